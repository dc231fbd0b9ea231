"""Gathers the facts: asks the services, the machine and the plan, and says of what does not answer why."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil

from sinkbench.doctor.connectors import Around, connectors_of, connectors_there
from sinkbench.doctor.facts import Area, Connector, Facts, Group, Machine, Topic
from sinkbench.environment.cgroup import container
from sinkbench.errors import PlanError, ServiceError, UserError
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.plan import Plan
from sinkbench.plan.settings import check_settings
from sinkbench.plan.targets import check_targets
from sinkbench.race.preparation import LEAST_FREE_BYTES, preflight
from sinkbench.race.validation import validate_configs
from sinkbench.services.access import curl
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka import Kafka, PartitionCopies, group_of
from sinkbench.services.servercert import certificates_until, https_places
from sinkbench.sinks import SinkState, settable_of_sinks, sink_kind, sink_kinds, sinks_of
from sinkbench.stack import Stack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import is_ours

__all__ = ["Look", "look"]

# Enough to see a key that is in one of ten records, and few enough to be read in a moment.
SAMPLED_RECORDS = 2_000
SAMPLE_SECONDS = 3.0
# Each group is a question of its own.
MOST_GROUPS = 200
DOWN = "the stack is down; `sinkbench up` starts it"
NOT_OURS = "these machines are somebody else's"
_HEAPS = ("kafka_heap", "connect_heap", "elasticsearch_heap")
_FILES = re.compile(r"^Max open files\s+(\S+)", re.MULTILINE)
_UNITS = {"m": 1024**2, "g": 1024**3}


def look(stack: Stack, checkout: Path, plan: Plan | None = None, *, sample: bool = True) -> Facts:
    """One look at a stack, and at what a plan would do there.

    Args:
        stack: nothing of it is changed, or started.
        checkout: where sinkbench's own files are.
        plan: what a race would run; None: only what is there.
        sample: whether records are read, to see their keys. While a race runs that would disturb it.
    """
    return Look(stack, checkout, plan, sample=sample).facts()


class Look:
    """One look, step by step; what cannot be seen is in `unseen`."""

    def __init__(self, stack: Stack, checkout: Path, plan: Plan | None, *, sample: bool) -> None:
        self._stack = stack
        self._checkout = checkout
        self._plan = plan
        self._sample = sample
        self._endpoints = stack.endpoints
        self._unseen: dict[Area, str] = {}

    def facts(self) -> Facts:
        """What was seen."""
        up = self._stack.running()
        if not up:
            self._unseen |= dict.fromkeys(
                (Area.CONNECT, Area.KAFKA, Area.SINKS, Area.DATABASE, Area.POOLER, Area.CLUSTER, Area.FILES), DOWN
            )
        states = self._states() if up else {}
        cells, refusals = self._cells()
        with self._connect(up) as connect:
            around = Around(self._endpoints, connect, states, self._stack.plugin_jars())
            there = self._there(around)
            planned, more = connectors_of(cells, around, self._checkout)
        refusals += more
        if self._plan is not None and cells and not refusals and Area.CONNECT not in self._unseen:
            refusals += self._refusals(self._plan, cells)
        topics, left, behind = self._read(there)
        machine = self._machine(up)
        certificates = self._certificates() if up else {}
        load = None if self._plan is None else self._plan.load
        return Facts(
            workers=self._stack.workers,
            worker=next(iter(self._endpoints.connect.values()), "WORKER"),
            worker_curl=curl(self._endpoints.connect_access),
            shared=self._endpoints.shared,
            plan=None if self._plan is None else self._plan.name,
            partitions=None if load is None else load.partitions,
            keys=None if load is None or load.own else load.keys,
            refusals=tuple(refusals),
            connectors=(*there, *planned),
            topics=topics,
            left=left,
            behind=behind,
            sinks=states,
            machine=machine,
            certificates=certificates,
            now=datetime.now(UTC) if certificates else None,
            unseen=self._unseen,
        )

    # --- the plan ---

    def _cells(self) -> tuple[list[Cell], list[str]]:
        if self._plan is None:
            return [], []
        try:
            check_targets(self._plan, {kind.name: kind.target_ending for kind in sink_kinds()})
            check_settings(self._plan, settable_of_sinks(), self._others_stack)
            return expand(self._plan, self._stack.workers), []
        except PlanError as error:
            return [], str(error).splitlines()

    def _others_stack(self) -> str | None:
        return self._stack.name if self._stack.endpoints.shared else None

    def _refusals(self, plan: Plan, cells: list[Cell]) -> list[str]:
        """Why a race would end before its first trial, by the checks that it makes itself."""
        try:
            with closing(Cluster(self._stack, plan, self._checkout)) as bench:
                preflight(bench, cells)
                validate_configs(bench, cells, lambda line: None)
        except UserError as error:
            return str(error).splitlines()
        return []

    # --- Connect ---

    def _connect(self, up: bool) -> AbstractContextManager[ConnectCluster | None]:
        workers = self._endpoints.connect
        # A cluster without workers would be asked for a minute.
        states = {state.name: state for state in self._stack.states()} if up else {}
        dead = [states[name].detail for name in workers if name in states and states[name].state != "running"]
        if up and workers and len(dead) == len(workers):
            self._unseen[Area.CONNECT] = f"no worker answers: {dead[0] or 'it does not run'}"
        if Area.CONNECT in self._unseen:
            return nullcontext()
        return ConnectCluster(workers.values(), self._endpoints.connect_access)

    def _there(self, around: Around) -> list[Connector]:
        try:
            return connectors_there(around)
        except ServiceError as error:
            self._unseen[Area.CONNECT] = in_one_line(error)
            return []

    # --- Kafka ---

    def _read(self, there: list[Connector]) -> tuple[dict[str, Topic], tuple[Group, ...], dict[str, tuple[int, ...]]]:
        """The topics that connectors read, the groups of connectors that are gone, and brokers that are behind."""
        if Area.KAFKA in self._unseen:
            return {}, (), {}
        try:
            kafka = Kafka(self._endpoints.kafka, self._endpoints.kafka_settings)
            brokers, exist = kafka.copies()
            names = dict.fromkeys(name for each in there for name in each.topics if name in exist)
            topics = {name: self._topic(kafka, name) for name in names}
            behind = {name: found for name, each in exist.items() if (found := _behind(brokers, each.values()))}
            return topics, self._left(kafka, {each.name for each in there}), behind
        except ServiceError as error:
            self._unseen[Area.KAFKA] = in_one_line(error)
            return {}, (), {}

    def _topic(self, kafka: Kafka, name: str) -> Topic:
        records = tuple(count for _, count in sorted(kafka.end_offsets(name).items()))
        keys: Counter[bytes | None] = Counter()
        if self._sample and any(records):
            keys.update(kafka.some_keys(name, SAMPLED_RECORDS, SAMPLE_SECONDS))
        # What has no key is dealt out evenly.
        keys.pop(None, None)
        return Topic(name, records, keys.total(), len(keys), max(keys.values(), default=0))

    def _left(self, kafka: Kafka, there: set[str]) -> tuple[Group, ...]:
        prefix = group_of("")
        names = [name.removeprefix(prefix) for name in kafka.groups() if name.startswith(prefix)]
        gone = [name for name in names if name not in there and not is_ours(name)]
        groups = (Group(name, kafka.read_by(group_of(name))) for name in gone[:MOST_GROUPS])
        return tuple(group for group in groups if group.read)

    # --- the sinks ---

    def _states(self) -> dict[str, SinkState]:
        found: dict[str, SinkState] = {}
        silent: list[str] = []
        for name in sinks_of(self._endpoints):
            checkup = sink_kind(name).checkup
            if checkup is None:
                silent.append(f"{name} declares no checkup")
                continue
            try:
                found[name] = checkup.look(self._endpoints)
            except ServiceError as error:
                silent.append(f"{name}: {in_one_line(error)}")
        if silent:
            self._unseen[Area.SINKS] = "; ".join(silent)
        kinds = {Area.DATABASE: "database", Area.POOLER: "pooler", Area.CLUSTER: "cluster"}
        for area, name in kinds.items():
            if not any(getattr(state, name) is not None for state in found.values()):
                told = (state.unseen[name] for state in found.values() if name in state.unseen)
                self._unseen[area] = next(told, "; ".join(silent) or f"this stack has no {name}")
        return found

    # --- TLS ---

    def _certificates(self) -> dict[str, datetime]:
        """Until when the certificate of each server is valid that shows one."""
        ends = self._endpoints
        urls = {**ends.connect, **ends.loadgens}
        if ends.kafka_settings.get("security.protocol", "").upper().endswith("SSL"):
            listed = [each.strip() for each in ends.kafka.split(",")]
            found_at = {"kafka": listed[0]} if len(listed) == 1 else {f"kafka at {each}": each for each in listed}
            # They speak no HTTP, but TLS begins in the same way.
            urls |= {name: f"https://{address}" for name, address in (ends.brokers or found_at).items()}
        found = certificates_until(https_places(urls))
        # Of sinks that did not answer, too: one that has expired may be why.
        for name in sinks_of(ends):
            checkup = sink_kind(name).checkup
            if checkup is not None and checkup.certificates is not None:
                found |= checkup.certificates(ends)
        return found

    # --- the machine ---

    def _machine(self, up: bool) -> Machine:
        seen = self._stack.machine_cpu()
        free = self._stack.free_bytes()
        if free is None:
            self._unseen[Area.DISK] = NOT_OURS
        if seen is None:
            self._unseen |= dict.fromkeys((Area.CORES, Area.MEMORY, Area.FILES), NOT_OURS)
            return Machine(free_bytes=free, least_free_bytes=LEAST_FREE_BYTES)
        limits = self._stack.cpu_limits
        memory = psutil.virtual_memory()
        _, allowance = container()
        heaps = self._heaps()
        available = memory.available
        if allowance.memory_bytes is not None:
            available = min(available, allowance.memory_bytes)
        return Machine(
            cores=min((limits[name] for name in self._endpoints.sinks if name in limits), default=float(seen.cores)),
            memory_bytes=memory.total,
            available_bytes=available,
            heap_bytes=self._all_heaps(heaps),
            up=up,
            limits={
                name: (allowed.memory_bytes, heaps[name])
                for name, allowed in self._stack.allowances().items()
                if allowed.memory_bytes is not None and name in heaps
            },
            files=self._files() if up else {},
            free_bytes=free,
            least_free_bytes=LEAST_FREE_BYTES,
        )

    def _heaps(self) -> dict[str, int]:
        """The heap of each kind of service, by the settings."""
        settings = getattr(self._stack, "settings", None)
        heaps: Mapping[str, str] = {} if settings is None else settings.model_dump(include=set(_HEAPS))
        return {name.removesuffix("_heap"): int(text[:-1]) * _UNITS[text[-1]] for name, text in heaps.items()}

    def _all_heaps(self, heaps: Mapping[str, int]) -> int:
        """The heaps of all nodes together; of containers of each service one, and all workers."""
        layout = self._stack.layout
        if layout is None:
            return sum(heaps.values()) + (self._stack.workers - 1) * heaps.get("connect", 0)
        return sum(heaps.get(node.service, 0) for node in layout.nodes)

    def _files(self) -> dict[str, int]:
        """How many files each service that is a process of this machine may have open."""
        found: dict[str, int] = {}
        pids = {state.name: state.pid for state in self._stack.states() if state.pid}
        for name, pid in pids.items():
            # To ask the kernel for the limits of another account's process takes more rights than to read them.
            with suppress(OSError):
                limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii", errors="replace")
                if (soft := _FILES.search(limits)) is not None:
                    found[name] = int(soft[1]) if soft[1].isdigit() else sys.maxsize
        if not found:
            self._unseen[Area.FILES] = "no process of the services is seen from here"
        return found


def _behind(brokers: Collection[int], partitions: Iterable[PartitionCopies]) -> tuple[int, ...]:
    """The brokers that are to have a copy, and have none that is in sync."""
    return tuple(sorted({each for one in partitions for each in set(one.copies) - (set(one.in_sync) & set(brokers))}))
