"""A cluster without services: it stores its topic at a stated rate, by its own clock, and fails where told to."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from loadgen.checksum import SUM, checksum
from sinkbench.analysis.replication import Partition, Promise, ReplicationState
from sinkbench.analysis.samples import Sample
from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.plan import Plan
from sinkbench.results import TrialRecord
from sinkbench.services.connect import ConnectorStatus, Task
from sinkbench.sinks import Arrivals, Capabilities, Created, SinkBloat, SinkOthers, SinkReading, SinkSettings
from sinkbench.stack import Facts, ProxyTarget, ServiceState, Usage
from sinkbench.trial.names import Names
from sinkbench.trial.observer import Observer
from sinkbench.trial.resources import Resources
from sinkbench.trial.sampler import Sources
from sinkbench.trial.trial import run_trial
from sinkbench.trial.values import AT_ONCE, Loaded, Others, Pace
from sinkbench.trial.workloads.drain import Drain

INTERVAL_SECONDS = 0.25


def status(tasks: int, failed: int = 0, workers: int = 3) -> ConnectorStatus:
    """A connector with so many tasks, spread evenly, of which the last ones FAILED."""
    states = ["RUNNING"] * (tasks - failed) + ["FAILED"] * failed
    return ConnectorStatus(
        "RUNNING", "", tuple(Task(n, state, f"w{n % workers}", "it broke") for n, state in enumerate(states))
    )


class Quiet(Observer):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.phases: list[str] = []
        self.steps: list[Any] = []
        self.records: list[Any] = []
        self.say, self.step, self.ended = self.lines.append, self.steps.append, self.records.append
        self.judged = lambda summary: None

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def begin(self, run: str, cells: object, trials: int | None, kept: object = ()) -> None:
        return


def resources(cluster: Any, cell: Cell | None = None, records: int = 20_000, observer: Any = None) -> Resources:
    """What a trial of this cell, or of the first one of the cluster's plan, has on the cluster."""
    of = expand(cluster.plan, 3)[0] if cell is None else cell
    return Resources(cluster, of, Names.of("abcdef_001"), records, observer or Quiet())


def drained(cluster: Any, recover: Any = None, cell: Cell | None = None, records: int = 20_000) -> TrialRecord:
    return run_trial(resources(cluster, cell, records), Drain(), 1, recover)[0]


def codes(record: TrialRecord) -> list[ReasonCode]:
    return [each.code for each in record.reasons]


@cache
def loaded(run: str) -> list[Any]:
    """The first records of a load."""
    records = [{"bench": {"run": run, "seq": seq}} for seq in range(3)]
    return [{"bench": {**each["bench"], SUM: checksum(each)}} for each in records]


class FakeSink:
    """Counts, and has what the cluster says that it stored. It is its own capabilities."""

    def __init__(self, cluster: "FakeCluster") -> None:
        self._cluster = cluster
        self.capabilities: Any = Capabilities(
            times=self, others=self, replication=self, changes=self, documents=self, service_settings=self
        )
        self.writes = lambda target: cluster.written // 500
        self.connection_limit, self.seen = lambda: 100, lambda: SinkOthers(None)
        self.disk_bytes = lambda target: 600 * cluster.stored
        self.drop = lambda target: cluster.there.discard(f"target {target}")
        self.settle = lambda target: cluster.audit()
        self.versions = lambda target, run: iter(())
        self.bloat = lambda target: cluster.bloats.pop(0) if cluster.bloats else None
        self.diverted, self.rate = lambda target: cluster.diverted, lambda target, records: cluster.rate
        self.watch = lambda target, interval_seconds: nullcontext(FakeWatch(cluster))

    def create(self, target: str, file: Path | None = None) -> Created:
        self._cluster.create_target(target)
        return Created(notes=self._cluster.notes_of_target)

    def read(self, target: str) -> SinkReading:
        return SinkReading(self._cluster.stored, None)

    def settings(self, target: str, config: Mapping[str, str]) -> SinkSettings:
        return SinkSettings({"fsync": "on"}, {}, self._cluster.promise)

    def sequences(self, target: str, run: str) -> Iterator[Any]:
        yield np.arange(self._cluster.lost, self._cluster.offered)
        yield np.arange(self._cluster.lost, self._cluster.lost + self._cluster.twice)

    def count(self, target: str) -> int:
        return self._cluster.offered - self._cluster.lost + self._cluster.twice

    def some(self, target: str, run: str, seqs: Sequence[int]) -> Mapping[int, Any]:
        return {seq: dict(loaded(run)[seq]) for seq in seqs}

    def all(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        yield loaded(run)

    def exclude_existing(self) -> None:
        return

    def check(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        return self._cluster.helds.pop(0) if self._cluster.helds else ReplicationState(copies=1, asked=1)


class FakeWatch(nullcontext["FakeCluster"]):
    """Tells what the cluster says of arrivals."""

    def read(self, run: str, one_in: int) -> Arrivals:
        if self.enter_result.arrived is None:
            raise OSError("the arrivals are gone")
        return self.enter_result.arrived


class FakeSampler:
    """Samples as fast as they are asked for."""

    def __init__(self, cluster: "FakeCluster", sources: Sources) -> None:
        self._cluster, self._in_topic = cluster, sources.in_topic
        self.samples: list[Sample] = []
        self.start, self.stop, self.now = lambda: 0, lambda: None, lambda: cluster.now()

    def wait(self, seen: int, timeout_seconds: float) -> list[Sample]:
        cluster, seconds = self._cluster, len(self.samples) * INTERVAL_SECONDS
        if cluster.silent:
            return []
        there = self._in_topic()
        cluster.at = seconds
        goes_on = self.samples or cluster.revived
        before = cluster.stored if goes_on else 0
        rate = cluster.rate_after if cluster.revived else cluster.rate
        stands = cluster.frozen is not None and cluster.frozen[0] <= seconds < cluster.frozen[1]
        if cluster.stuck or stands:
            rate = 0.0
        cluster.stored = min(before + round(rate * INTERVAL_SECONDS), there) if goes_on else 0
        cluster.written += cluster.stored - before
        dead = cluster.dies is not None and seconds >= cluster.dies and not cluster.revived
        self.samples.append(
            Sample(
                seconds,
                cluster.stored,
                uncommitted=there - cluster.stored,
                backends=12,
                tasks_running=cluster.tasks - cluster.failed,
                tasks_failed=cluster.failed,
                cpu_seconds={cluster.mortal: None if dead else seconds, "postgres": seconds},
                signs={
                    "kafka_compiler_cpu_seconds_total": seconds * cluster.compiling(),
                    "kafka_memory_bytes": 1e9,
                    "postgres_memory_bytes": 1e8 + seconds,
                },
                in_topic=there,
                silent={cluster.mute: cluster.frozen[0]} if stands and cluster.mute else {},
            )
        )
        return self.samples[seen:]


class SlowSampler(FakeSampler):
    """Takes a little time for each sample, in which another thread can do something."""

    def wait(self, seen: int, timeout_seconds: float) -> list[Sample]:
        time.sleep(0.001)
        return super().wait(seen, timeout_seconds)


@dataclass
class FakeCluster:
    """Stands for `Cluster`, as far as a trial and a race use it.

    The sink stores `rate` records a second, `rate_after` once it was `revived`, none while it is `stuck` or `frozen`
    (from when to when, in seconds), when `mute` answers no probe. The `mortal` service dies after `dies` seconds, with
    `exit_code`; those that are `dead` do not run. `helds`, `bloats` and `meets` are what is found at each look, in
    turn. `breaks` is called with what is done to a service or the connector, as `kill postgres`. `there` is what was
    created and not removed; `calls` are the steps that leave something behind, `configs` those of started connectors.
    """

    plan: Plan
    rate: float = 1_000.0
    lost: int = 0
    twice: int = 0
    failed: int = 0
    dies: float | None = None
    mortal: str = "kafka"
    exit_code: int | None = None
    frozen: tuple[float, float] | None = None
    mute: str = ""
    stuck: bool = False
    revived: bool = False
    rate_after: float = 1_000.0
    refused: str | None = None
    silent: bool = False
    diverted: str | None = None
    refuses: Exception | None = None
    arrived: Arrivals | None = None
    compiling: Callable[[], float] = lambda: 0.0
    there: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    configs: list[Mapping[str, str]] = field(default_factory=list)
    stored: int = 0
    written: int = 0
    tasks: int = 0
    offered: int = 0
    offered_rate: float = 0.0
    looks: int = 0
    dead: list[str] = field(default_factory=list)
    siblings: dict[tuple[tuple[str, str], ...], Any] = field(default_factory=dict)
    sent: list[bytes] = field(default_factory=list)
    meets: list[Others] = field(default_factory=list)
    helds: list[ReplicationState] = field(default_factory=list)
    partitions: dict[int, Partition] = field(default_factory=lambda: {0: (1, (1,), (1,))})
    promise: Promise | None = field(default_factory=lambda: Promise(1, "all"))
    bloats: list[SinkBloat] = field(default_factory=list)
    breaks: Callable[[str], None] = lambda done: None
    at: float = 0.0
    set_to: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    poisoned: int = 0
    notes_of_target: tuple[str, ...] = ()
    log: str = ""

    def __post_init__(self) -> None:
        self.records = None
        self.queries: list[Any] = []
        self.checkout = Path()
        self.record_bytes = self.largest_bytes = self.plan.load.record_bytes
        self.value_bytes = lambda form: self.record_bytes
        self.refusal = lambda cell, config: self.refused
        self.reconnect, self.refresh = (partial(self.calls.append, name) for name in ("reconnect", "refresh"))
        self.check_disk = lambda *what, **how: self.calls.append("check")
        self.close, self.for_probes = lambda: None, lambda: self
        self.now: Callable[[], float] = lambda: self.at
        self.stack = SimpleNamespace(
            facts=Facts,
            usage=Usage,
            log_tail=lambda service, lines: self.log,
            endpoints=SimpleNamespace(
                sinks={}, shared=False, replication=1, connect=dict.fromkeys(("w0", "w1", "w2"), ""), worker_ids={}
            ),
            services=lambda: [ServiceState(name, "dead", None, "", self.exit_code) for name in self.dead],
            dead=lambda: dict.fromkeys(self.dead, ""),
            up=lambda say: self.dead.clear(),
            faults=SimpleNamespace(do=self.do, restarts=False),
        )
        faults = self.stack.faults
        target = ProxyTarget("127.0.0.1", 5432, {"POSTGRES_PORT": "{port}"})
        faults.proxies = SimpleNamespace(targets={"postgres": target}, run=self.proxy)
        faults.promotion = lambda sink: SimpleNamespace(
            promote=lambda: self.do("promote", "postgres-2") or ("127.0.0.1", 15433),
            demote=partial(self.do, "demote", sink),
            restore=partial(self.do, "restore", "roles"),
        )
        faults.small_disks = lambda sink: SimpleNamespace(mounted=nullcontext)
        self.kafka = SimpleNamespace(
            create_topic=lambda name, *how: self.there.add(f"topic {name}"),
            delete_topic=lambda name: self.there.discard(f"topic {name}"),
            topics=set,
            end_offsets=lambda topic: {0: self.in_topic(topic)},
            committed=lambda group, topic: self.consumed(),
            members=lambda group: self.tasks,
            keeps_status=lambda topic, connector: False,
            some_records=self.some_records,
            delete_group=lambda name: self.calls.append(f"delete {name}"),
            produce=self.poison,
            copies=lambda topic: (frozenset(each[0] for each in self.partitions.values()), {topic: self.partitions}),
        )
        self.connect = SimpleNamespace(
            create=lambda name, config: self.start_connector(name, config),
            configure=lambda name, config: self.configure(name, config),
            status=lambda name: self.status(name),
            set_tasks=self.set_tasks,
            restart=self.restart,
            restart_failed=self.restart_failed,
            wait_for_tasks=lambda name, tasks, seconds: None,
            **{name: partial(self.do, name) for name in ("pause", "resume")},
        )
        self.metrics = SimpleNamespace(last=lambda connector, records: {}, read=lambda connector: {})

    def some_records(self, topic: str, count: int, *, last: bool = False) -> list[bytes]:
        if count > 1_000:
            return list(self.sent)
        return [json.dumps(each).encode() for each in loaded(topic.removeprefix("tides_"))]

    def poison(self, topic: str, values: Iterable[bytes]) -> int:
        self.poisoned += (count := len(list(values)))
        return count

    def do(self, what: str, target: str) -> None:
        self.calls.append(f"{what} {target}")
        self.breaks(f"{what} {target}")

    @contextmanager
    def proxy(self) -> Iterator[Any]:
        self.calls.append("proxy begins")
        yield SimpleNamespace(
            stand_before=lambda name, upstream: ("127.0.0.1", 4711),
            add=lambda name, toxic: self.do("add", f"{toxic.name} to {name}"),
            remove=lambda name, toxic: self.do("remove", f"{toxic.name} from {name}"),
            enable=lambda name, enabled: self.do("enable" if enabled else "disable", name),
        )
        self.calls.append("proxy ends")

    def file_of(self, cell: Cell) -> dict[str, str]:
        return {"connection.url": "jdbc:postgresql://db:${env:POSTGRES_PORT}/x"}

    def config(self, cell: Cell, names: Names, variables: Mapping[str, str] | None = None) -> dict[str, str]:
        return {"connector.class": "a.SinkConnector", "tasks.max": str(cell.tasks), **(variables or {})}

    def others(self, sinks: Any = (), own: Any = ()) -> Others:
        return self.meets.pop(0) if self.meets else Others({})

    def revive(self) -> None:
        self.revived = True

    def sink(self, name: str) -> Any:
        return FakeSink(self)

    def another_sink(self, name: str) -> Any:
        def refuse(target: str, why: str) -> None:
            self.do("refuse" if why == "read only" else f"refuse ({why})", target)

        each: Any = SimpleNamespace(refuse=refuse, accept=partial(self.do, "accept"), disk=self.disk_to_fill)
        return SimpleNamespace(capabilities=Capabilities(refusing=each, disk_to_fill=each), close=lambda: None)

    @contextmanager
    def disk_to_fill(self, target: str, small_disk: Any) -> Iterator[Any]:
        self.calls.append(f"disk of {target} begins")
        try:
            yield SimpleNamespace(**{each: partial(self.do, each, "disk") for each in ("fill", "free")})
        finally:
            self.do("end", "disk")
            self.calls.append(f"disk of {target} ends")

    @property
    def all(self) -> list[Any]:
        return [self, *self.siblings.values()]

    def of(self, cell: Cell) -> Any:
        return self.siblings.get(cell.variables, self)

    def set_services(self, cell: Cell) -> None:
        self.set_to = dict(cell.settings)

    def set_back(self, sink: str) -> None:
        self.set_to = {}

    def load(self, names: Names, records: int, progress: Any, changed: Any = None, pace: Pace = AT_ONCE) -> Loaded:
        self.calls.append("load")
        self.there.add(f"topic {names.topic}")
        if self.refuses is not None:
            raise self.refuses
        self.offered, self.offered_rate, self.looks = records, pace.rate or 0.0, 0
        return Loaded(records, records, records, 3, 3, 100_000.0, None if pace.rate is None else records)

    def create_target(self, target: str) -> None:
        self.there.add(f"target {target}")

    def start_connector(self, name: str, config: Mapping[str, str]) -> None:
        self.calls.append("start")
        self.configs.append(config)
        self.there.add(f"connector {name}")
        self.tasks = int(config["tasks.max"])

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        if variables := {key: value for key, value in config.items() if key.isupper()}:
            self.calls.append(f"redirect to {variables}")
            self.failed, self.stuck = 0, False
        else:
            self.start_connector(name, config)

    def status(self, name: str) -> ConnectorStatus | None:
        return status(self.tasks, self.failed)

    def set_tasks(self, name: str, tasks: int) -> None:
        self.calls.append(f"set {tasks}")
        self.tasks = tasks

    def restart(self, name: str) -> None:
        self.stuck = False
        self.do("restart", name)

    def restart_failed(self, name: str) -> None:
        self.calls.append("restart")
        self.failed, self.stuck = 0, False

    def stop_connector(self, name: str, group: str = "") -> None:
        self.calls.append("stop")
        self.there.discard(f"connector {name}")

    def sampler(self, sources: Sources, interval_seconds: float, background: Mapping[str, float], *close: Any) -> Any:
        return (SlowSampler if "sink" in background else FakeSampler)(self, sources)

    def in_topic(self, topic: str) -> int:
        self.looks += 1
        if not self.offered_rate:
            return self.offered + self.poisoned
        return min(self.offered, round(self.offered_rate * self.looks * INTERVAL_SECONDS)) + self.poisoned

    def consumed(self) -> int:
        return self.stored

    def audit(self) -> None:
        """The sink is asked for all that it has."""
        self.calls.append("audit")
