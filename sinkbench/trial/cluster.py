"""One stack, its clients and its plan: what all trials of a run share."""

import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from loadgen.forms import DOCUMENT, Form, added_bytes
from sinkbench.errors import Interrupted, ReasonCode, ServiceError, TrialFailed
from sinkbench.load.loadgens import Loadgens
from sinkbench.load.records import KeptRecords
from sinkbench.plan.cells import Cell
from sinkbench.plan.entries import load_queries, read_connector
from sinkbench.plan.plan import Plan
from sinkbench.services.access import Access
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.connect_metrics import ConnectMetrics
from sinkbench.services.kafka import Kafka
from sinkbench.sinks import Sink, needed, open_sink, sink_kind
from sinkbench.stack import Stack
from sinkbench.trial.names import Names, is_ours
from sinkbench.trial.sampler import Sampler
from sinkbench.trial.values import AT_ONCE, Loaded, Others, Pace

# A worker that takes longer to answer is broken; the next one is asked.
BACKGROUND_SECONDS = 3.0
# Records that only leaders have acknowledged are not visible in the topic until the followers have copied them.
COPIED_SECONDS = 15.0
INTERRUPTED_SECONDS = 3.0
# Between two readings of what settles soon.
AGAIN_SECONDS = 0.25
# Replaced by the workers' config provider, or by a stack file's variables.
VARIABLE = re.compile(r"\$\{env:([^}]+)\}")


Found = TypeVar("Found")


def read_until(done: Callable[[Found], bool], read: Callable[[], Found], seconds: float) -> Found:
    """Reads again and again until `done`, for `seconds` at most; returns the last reading."""
    deadline = time.monotonic() + seconds
    while not done(found := read()) and time.monotonic() < deadline:
        time.sleep(AGAIN_SECONDS)
    return found


@dataclass(eq=False)
class Cluster:
    """Clients and plan of one stack. `records` are your own records, if the plan loads these; `timeout_seconds` limits
    requests to Kafka and the workers; None: the clients' default."""

    sampler = Sampler

    stack: Stack
    plan: Plan
    checkout: Path
    records: KeptRecords | None = None
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        self._timeout = () if self.timeout_seconds is None else (self.timeout_seconds,)
        self.siblings: dict[tuple[tuple[str, str], ...], Cluster] = {}
        """Of the stacks with variables, by these."""
        self._sinks: dict[str, Sink] = {}
        self._set: set[str] = set()
        self.queries = [] if self.plan.queries is None else load_queries(self.checkout / self.plan.queries)
        self._loadgens = Loadgens(self.stack.endpoints, self.records)
        self._find_services()

    @property
    def all(self) -> "list[Cluster]":
        return [self, *self.siblings.values()]

    def of(self, cell: Cell) -> "Cluster":
        """The cluster on whose stack the cell is measured."""
        return self.siblings.get(cell.variables, self)

    @property
    def record_bytes(self) -> float:
        return self.plan.load.record_bytes if self.records is None else self.records.facts.mean_bytes

    @property
    def largest_bytes(self) -> int:
        return self.plan.load.record_bytes if self.records is None else self.records.largest_bytes

    def value_bytes(self, form: Form) -> float:
        """Mean size of a record's value in a topic."""
        return self.record_bytes + added_bytes(form)

    def _find_services(self) -> None:
        endpoints = self.stack.endpoints
        # Addresses may change between requests.
        workers = lambda: list(self.stack.endpoints.connect.values())  # noqa: E731
        self.connect = ConnectCluster(workers, endpoints.connect_access, *self._timeout)
        self.connect.changes = endpoints.connector_changes
        self.kafka = Kafka(endpoints.kafka, endpoints.kafka_settings, *self._timeout)
        # The metrics endpoints must not receive Connect's user and password.
        self.metrics = ConnectMetrics(endpoints.connect_metrics, Access(ca=endpoints.connect_access.ca))

    def close(self, *, loadgens: bool = True) -> None:
        if loadgens:
            self._loadgens.close()
        self.connect.close()
        self.metrics.close()
        for sink in self._sinks.values():
            sink.close()
        self._sinks.clear()

    def reconnect(self) -> None:
        """Connects anew to all services, of which one may have restarted at another address."""
        self.close()
        self._loadgens = Loadgens(self.stack.endpoints, self.records)
        self._find_services()

    def refresh(self) -> None:
        """Connects anew to all services except the load generators, one of which may be running."""
        self.close(loadgens=False)
        self._find_services()

    def for_probes(self) -> "Cluster":
        """Returns the same stack with clients that time out after `BACKGROUND_SECONDS`; the caller closes it."""
        return Cluster(self.stack, self.plan, self.checkout, self.records, BACKGROUND_SECONDS)

    @contextmanager
    def for_thread(self) -> "Iterator[Cluster]":
        """The same stack with own clients, for another thread. Load generators are shared: threads load in turn."""
        other = Cluster(self.stack, self.plan, self.checkout, self.records)
        other._loadgens = self._loadgens
        try:
            yield other
        finally:
            other.close(loadgens=False)

    def sink(self, name: str) -> Sink:
        """Returns the sink, connected once. Only one thread may use it at a time."""
        if name not in self._sinks:
            self._sinks[name] = self.another_sink(name)
        return self._sinks[name]

    def another_sink(self, name: str) -> Sink:
        """Returns the sink with another connection, for another thread; the caller closes it."""
        return open_sink(name, self.stack.endpoints, self.checkout)

    def forget_sink(self, name: str) -> None:
        if (sink := self._sinks.pop(name, None)) is not None:
            with suppress(ServiceError):
                sink.close()

    def others(self, sinks: Iterable[str], own: Collection[str] = ()) -> Others:
        """Returns the other clients of Connect, Kafka and these sinks. `own` are connectors to ignore."""
        running = {name: tasks for name, tasks in self.connect.running().items() if name not in own}
        topics = {name: count for name, count in self.kafka.written().items() if not is_ours(name)}
        known = {name: self.sink(name).capabilities.others for name in sinks}
        asked = {name: others.seen() for name, others in known.items() if others is not None}
        written = {(table, sink): count for sink, found in asked.items() for table, count in found.written.items()}
        tables = {f"{table} of {sink}": count for (table, sink), count in written.items() if not is_ours(table)}
        connections = {name: found.connections for name, found in asked.items() if found.connections is not None}
        return Others(running, topics, tables, connections)

    def config(self, cell: Cell, names: Names, variables: Mapping[str, str] | None = None) -> dict[str, str]:
        """The connector's file with the trial's topic and tasks, and the plan's overrides. Raises PlanError.

        `${env:NAME}` is replaced if `variables` or the stack file define it; else the workers replace it."""
        changed = {**self.file_of(cell), "topics": names.topic, "tasks.max": str(cell.tasks)}
        known = {**self.stack.endpoints.connect_variables, **(variables or {})}
        return {key: filled_in(value, known) for key, value in changed.items()}

    def file_of(self, cell: Cell) -> dict[str, str]:
        """The cell's connector file with the plan's overrides. Raises PlanError for a bad file."""
        return {**read_connector(self.checkout / "connectors" / f"{cell.pipeline}.json"), **cell.overrides}

    def refusal(self, cell: Cell, config: Mapping[str, str]) -> str | None:
        """Returns why a connection like the connector's to its sink fails; None if it succeeds or cannot be tried."""
        ask, known = sink_kind(cell.sink).refusal, dict(config)
        with suppress(ServiceError):
            known |= {key: value for key, value in self.connect.validate(config).values.items() if key in known}
        return None if ask is None else ask(self.stack.endpoints, known)

    def check_disk(self, records: int, rows_before: int = 0, form: Form = DOCUMENT) -> None:
        """Raises TrialFailed if the disk has no room for the trial's records.

        They take their size once in the topic and about three times in the sink (log, data, merges)."""
        free = self.stack.usage().free_bytes
        needed = records * self.value_bytes(form) + (records + rows_before) * 3 * self.record_bytes + 1_000_000_000
        if free is not None and free < needed:
            have = f"need {needed / 1e9:.1f} GB of free disk space, there are {free / 1e9:.1f} GB"
            fix = "free some, or set SINKBENCH_HOME to another disk"
            raise TrialFailed(f"{records:,} records {have}; {fix}", ReasonCode.DISK_TOO_SMALL)

    def load(
        self,
        names: Names,
        records: int,
        progress: Callable[[int], None],
        changed: Mapping[str, object] | None = None,
        pace: Pace = AT_ONCE,
    ) -> Loaded:
        """Loads the trial's topic. `changed` are keys of the plan's load with other values. Raises TrialFailed if a
        record was not acknowledged, or the pace's `stop` was set."""
        load = self.plan.load.model_copy(update=changed)
        parts = self._loadgens.load(names.topic, names.trial, records, load, progress, *pace)
        acknowledged, seconds = sum(each.acknowledged for each in parts), max(each.elapsed_seconds for each in parts)
        read = lambda: self.kafka.end_offsets(names.topic).values()  # noqa: E731
        ends = read_until(lambda ends: sum(ends) >= acknowledged, read, COPIED_SECONDS)
        return Loaded(
            sent=sum(each.sent for each in parts),
            acknowledged=acknowledged,
            in_topic=sum(ends),
            partitions=len(ends),
            partitions_with_records=sum(end > 0 for end in ends),
            records_per_second=acknowledged / seconds if seconds else 0.0,
            in_time=None if pace.rate is None else sum(each.behind.records_in_time for each in parts if each.behind),
            clocks=[each.clock for each in parts if each.clock is not None],
            cpu_seconds=sum(each.cpu_seconds for each in parts),
        )

    def set_services(self, cell: Cell) -> None:
        """Applies the cell's service settings to its sink until `set_back`, and reverts those of an earlier trial."""
        self.set_back(cell.sink)
        if cell.settings:
            self._set.add(cell.sink)
            needed(self.sink(cell.sink).capabilities.service_settings, "service_settings").apply(cell.settings)

    def set_back(self, sink: str) -> None:
        """Reverts `set_services`. Raises ServiceError if that fails."""
        if sink in self._set:
            needed(self.sink(sink).capabilities.service_settings, "service_settings").revert()
            self._set.discard(sink)

    def hurry(self, others: "Iterable[Cluster]" = ()) -> None:
        """Makes all threads, and those of `others`, wait no longer for a dead worker of sinkbench's own stack: the race
        was interrupted, and the next one removes what is left. `others` may be closed."""
        if not self.stack.endpoints.shared and not self.connect.all_answer():
            for each in (self, *others):
                each.connect.patience_seconds = INTERRUPTED_SECONDS

    def stop_connector(self, name: str, group: str) -> None:
        """Deletes a connector, and waits until its tasks are gone and its group is empty."""
        if isinstance(sys.exception(), Interrupted):
            self.hurry()
        self.connect.delete(name)
        self.connect.wait_until_gone(name)
        self.kafka.wait_until_empty(group, self.connect.patience_seconds)


def filled_in(value: str, variables: Mapping[str, str]) -> str:
    """Replaces the known `${env:NAME}` in a value of a connector's configuration."""
    # A connector file may contain numbers, which Connect accepts.
    if not isinstance(value, str):
        return value
    return VARIABLE.sub(lambda found: variables.get(found[1], found[0]), value)
