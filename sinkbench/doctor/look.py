"""Gathers the facts from the services, the machine and the plan, or the reason why one does not answer."""

import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import psutil

from sinkbench.doctor.configs import leads_to, sink_of
from sinkbench.doctor.diagnosis import Area, Connector, Facts, Machine
from sinkbench.doctor.progress import WATCH_SECONDS, Offsets, Partition, Progress, Reading
from sinkbench.environment.machine import container
from sinkbench.errors import ConnectError, PlanError, ServiceError, TargetError, UserError
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.entries import read_connector
from sinkbench.plan.plan import Plan
from sinkbench.race.preparation import LEAST_FREE_BYTES, check_plan, preflight, validate_configs
from sinkbench.services.access import curl
from sinkbench.services.causes import explained, failure
from sinkbench.services.connect import ConnectCluster, ConnectorStatus, placement
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka import Kafka
from sinkbench.services.topics import TopicReader
from sinkbench.sinks import sink_kind, sinks_of
from sinkbench.sinks.jdbcurl import jdbc_url
from sinkbench.sinks.values import SinkState
from sinkbench.stack import Stack
from sinkbench.stack.logs import logs_of
from sinkbench.topology import needed_bytes
from sinkbench.trial.cluster import VARIABLE, Cluster, filled_in
from sinkbench.trial.names import is_ours

# How far back a log tells why a connector stands still.
LOG_SECONDS = 600.0
DOWN = "the stack is down; `sinkbench up` starts it"
NOT_OURS = "these machines belong to others"


@dataclass
class Look:
    """Gathers facts about a stack, without changing or starting anything, and about a race of `plan` on it. Without one
    the offsets of running connectors, or of `only` this one, are watched until they move, for a minute at most."""

    stack: Stack
    checkout: Path
    plan: Plan | None = None
    only: str | None = None

    def facts(self) -> Facts:
        self._endpoints = self.stack.endpoints
        self._unseen: dict[Area, str] = {}
        up = self.stack.start_id() is not None
        if not up:
            areas = Area.CONNECT, Area.KAFKA, Area.SINKS, Area.DATABASE, Area.POOLER, Area.CLUSTER
            self._unseen |= dict.fromkeys(areas, DOWN)
        self._states = self._states_of_sinks() if up else {}
        cells, refusals = self._cells()
        with self._connected(up) as self._connect:
            there = self._there()
            planned = self._planned(cells, refusals)
        topics = self._topics(there)
        there = self._watched(there, topics.keys())
        if self.plan is not None and cells and not refusals and Area.CONNECT not in self._unseen:
            refusals += self._refusals(self.plan, cells)
        load = None if self.plan is None else self.plan.load
        return Facts(
            workers=self.stack.workers,
            worker=next(iter(self._endpoints.connect.values()), "WORKER"),
            worker_curl=curl(self._endpoints.connect_access),
            shared=self._endpoints.shared,
            plan=None if self.plan is None else self.plan.name,
            partitions=None if load is None else load.partitions,
            keys=None if load is None or load.own else load.keys,
            record_bytes=None if load is None or load.own else load.record_bytes,
            refusals=tuple(dict.fromkeys(refusals)),
            connectors=(*there, *planned),
            topics=topics,
            sinks=self._states,
            machine=self._machine(up),
            unseen=self._unseen,
        )

    def _cells(self) -> tuple[list[Cell], list[str]]:
        if self.plan is None:
            return [], []
        try:
            cells = expand(self.plan, self.stack.workers)
            check_plan(self.plan, cells, self.stack)
        except PlanError as error:
            return [], str(error).splitlines()
        return cells, []

    def _refusals(self, plan: Plan, cells: list[Cell]) -> list[str]:
        """Why a race would end before its first trial, by the race's own checks."""
        try:
            with closing(Cluster(self.stack, plan, self.checkout)) as cluster:
                preflight(cluster, cells)
                validate_configs(cluster, cells, lambda line: None)
        except UserError as error:
            return str(error).splitlines()
        return []

    def _connected(self, up: bool) -> AbstractContextManager[ConnectCluster | None]:
        workers = self._endpoints.connect
        # Requests to a cluster without workers would be retried for a minute.
        states = {state.name: state for state in self.stack.services()} if up else {}
        dead = [states[name].detail for name in workers if name in states and states[name].state != "running"]
        if up and workers and len(dead) == len(workers):
            self._unseen[Area.CONNECT] = f"no worker answers: {dead[0] or 'it does not run'}"
        if Area.CONNECT in self._unseen:
            return nullcontext()
        return ConnectCluster(workers.values(), self._endpoints.connect_access)

    def _there(self) -> list[Connector]:
        found: list[Connector] = []
        if (connect := self._connect) is None:
            return found
        try:
            self._names = connect.connectors()
            for name in self._names if self.only is None else [self.only]:
                # A trial's connector may be gone by now.
                with nullcontext() if self.only else suppress(ConnectError):
                    config, status = connect.config(name), connect.status(name)
                    if status is not None:
                        found.append(self._complete(self._running(name, config, status)))
        except ServiceError as error:
            if self.only is not None:
                raise
            self._unseen[Area.CONNECT] = in_one_line(error)
            return []
        return found

    def _running(self, name: str, config: Mapping[str, str], status: ConnectorStatus) -> Connector:
        return Connector(
            name=name,
            label=name,
            config=config,
            tasks=len(status.tasks) or int(config.get("tasks.max", 1)),
            trials=is_ours(name),
            state=status.state,
            # During a rebalance the placement of tasks means nothing.
            placement=placement(status, self._endpoints.worker_ids) if status.settled(len(status.tasks)) else {},
            failed=len(status.failed),
            cause=failure(status, config, *logs_of(self.stack, name)),
        )

    def _planned(self, cells: Sequence[Cell], refusals: list[str]) -> list[Connector]:
        """The connectors that a plan's cells would create; adds to `refusals` why some could not be created."""
        found: list[Connector] = []
        for cell in cells:
            try:
                file = read_connector(self.checkout / "connectors" / f"{cell.pipeline}.json")
                checkup = sink_kind(cell.sink).checkup
                unsafe = checkup.target(self.checkout / (cell.target or checkup.file)) if checkup else ()
            except (PlanError, TargetError) as error:
                refusals += str(error).splitlines()
                continue
            # A trial's topic is named only when the trial begins.
            set_here = {"name": "preflight", "topics": "preflight", "tasks.max": str(cell.tasks)}
            config = {key: str(value) for key, value in {**file, **cell.overrides, **set_here}.items()}
            connector = Connector(cell.key, cell.label, config, cell.tasks, planned=True, sink=cell.sink, unsafe=unsafe)
            found.append(self._complete(connector))
        return found

    def _complete(self, connector: Connector) -> Connector:
        """Adds what the connector's configuration leads to: sink, database, pooler and target."""
        # Connectors of other users must not get the stack file's secrets.
        known = self._endpoints.connect_variables if connector.planned else {}
        config = {key: filled_in(value, known) for key, value in connector.config.items()}
        if self._connect is not None and any(VARIABLE.search(value) for value in config.values()):
            # A refused configuration is a finding of its own; here its values are only unknown.
            with suppress(ServiceError):
                values = self._connect.validate(config).values
                config |= {key: value for key, value in values.items() if key in config}
        sink = connector.sink or sink_of(config)
        poolers = [each.pooler.address for each in self._states.values() if each.pooler is not None]
        return replace(
            connector,
            config=config,
            sink=sink,
            url=jdbc_url(config),
            pooled=leads_to(config, connector.config, next(iter(poolers), None)),
            unsafe=connector.unsafe if connector.planned else self._states.get(sink or "", SinkState()).target,
        )

    def _topics(self, there: list[Connector]) -> dict[str, tuple[int, ...]]:
        if Area.KAFKA in self._unseen:
            return {}
        try:
            kafka = Kafka(self._endpoints.kafka, self._endpoints.kafka_settings)
            _, exist = kafka.copies()
            names = dict.fromkeys(name for each in there for name in each.topics if name in exist)
            return {name: tuple(count for _, count in sorted(kafka.end_offsets(name).items())) for name in names}
        except ServiceError as error:
            self._unseen[Area.KAFKA] = in_one_line(error)
            return {}

    def _watched(self, there: list[Connector], topics: Set[str]) -> list[Connector]:
        """Adds how far the connectors that run have read, and why one stands still, by a log."""
        running = [each for each in there if each.runs and each.topics and topics >= set(each.topics)]
        seen: dict[str, list[Reading]] = {each.name: [] for each in running}
        if not seen or self.plan is not None:
            return there
        begun, left = time.monotonic(), [each for each in there if each.name in seen]
        try:
            with ExitStack() as opened:
                readers = {
                    each.name: [opened.enter_context(self._reader(each, name)) for name in each.topics] for each in left
                }
                while left and (now := time.monotonic() - begun) < WATCH_SECONDS + 2:
                    for each in left:
                        seen[each.name].append((now, dict(_offsets(readers[each.name]))))
                    left = [each for each in left if not Progress(seen[each.name]).is_clear]
                    time.sleep(1 if left else 0)
                watched = {name: self._progress(readers[name], of_one) for name, of_one in seen.items()}
        except ServiceError as error:
            self._unseen[Area.KAFKA] = in_one_line(error)
            return there
        return [self._with(each, watched[each.name]) if each.name in watched else each for each in there]

    def _reader(self, each: Connector, topic: str) -> AbstractContextManager[TopicReader]:
        return closing(TopicReader(self._endpoints.kafka, self._endpoints.kafka_settings, topic, each.group))

    def _progress(self, readers: Sequence[TopicReader], readings: list[Reading]) -> Progress:
        kafka = Kafka(self._endpoints.kafka, self._endpoints.kafka_settings)
        waiting: dict[str, dict[int, tuple[int, int]]] = {}
        for (topic, number), offsets in readings[-1][1].items():
            if offsets.unread:
                waiting.setdefault(topic, {})[number] = offsets.at, offsets.at + 1
        unread = (some for reader in readers for some in reader.records(waiting.get(reader.topic, {})))
        found, now = [one for some in unread for one in some], time.time()
        return Progress(
            readings,
            waited=max((now - one.timestamp()[1] / 1000 for one in found), default=None),
            kept=min(filter(None, map(kafka.kept_seconds, waiting)), default=None),
            record_bytes=mean(len(one.value() or b"") for one in found) if found else None,
        )

    def _with(self, each: Connector, progress: Progress) -> Connector:
        """Adds its progress, and what a log says of it if it stands still."""
        logs = logs_of(self.stack, each.name, time.time() - LOG_SECONDS, alone=len(self._names) == 1)
        told = (explained(log(), each.config) for log in logs if progress.stands_still)
        return replace(each, progress=progress, said=next(filter(None, told), ""))

    def _states_of_sinks(self) -> dict[str, SinkState]:
        found: dict[str, SinkState] = {}
        silent: list[str] = []
        for name in sinks_of(self._endpoints):
            if (checkup := sink_kind(name).checkup) is None:
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

    def _machine(self, up: bool) -> Machine:
        used = self.stack.usage()
        if (free := used.free_bytes) is None:
            self._unseen[Area.DISK] = NOT_OURS
        if used.machine is None:
            self._unseen[Area.MEMORY] = NOT_OURS
            return Machine(free_bytes=free, least_free_bytes=LEAST_FREE_BYTES)
        _, allowance = container()
        available = psutil.virtual_memory().available
        if allowance is not None and allowance.memory_bytes is not None:
            available = min(available, allowance.memory_bytes)
        need = 0 if up or self.stack.layout is None else needed_bytes(self.stack.layout)
        return Machine(available_bytes=available, needed_bytes=need, free_bytes=free, least_free_bytes=LEAST_FREE_BYTES)


def _offsets(readers: Sequence[TopicReader]) -> Iterator[tuple[Partition, Offsets]]:
    for reader in readers:
        committed = reader.committed()
        for number, (first, end) in reader.spans().items():
            yield (reader.topic, number), Offsets(first, committed.get(number, 0), end)
