"""Gathers the facts from the services, the machine and the plan, or the reason why one does not answer."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import psutil

from sinkbench.doctor.connectors import Around, connectors_of, connectors_there
from sinkbench.doctor.facts import Area, Connector, Facts, Machine
from sinkbench.environment.machine import container
from sinkbench.errors import PlanError, ServiceError, UserError
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.checks import check_settings, check_targets
from sinkbench.plan.plan import Plan
from sinkbench.race.preparation import LEAST_FREE_BYTES, preflight, validate_configs
from sinkbench.services.access import curl
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka import Kafka
from sinkbench.sinks import settable_of_sinks, sink_kind, sink_kinds, sinks_of
from sinkbench.sinks.values import SinkState
from sinkbench.stack import Stack
from sinkbench.topology import needed_bytes
from sinkbench.trial.cluster import Cluster

DOWN = "the stack is down; `sinkbench up` starts it"
NOT_OURS = "these machines belong to others"


def look(stack: Stack, checkout: Path, plan: Plan | None = None) -> Facts:
    """Gathers facts about a stack, without changing or starting anything, and about a race of `plan` on it."""
    return Look(stack, checkout, plan).facts()


class Look:
    """Gathers facts step by step; `_unseen` has what cannot be seen."""

    def __init__(self, stack: Stack, checkout: Path, plan: Plan | None) -> None:
        self._stack = stack
        self._checkout = checkout
        self._plan = plan
        self._endpoints = stack.endpoints
        self._unseen: dict[Area, str] = {}

    def facts(self) -> Facts:
        up = self._stack.start_id() is not None
        if not up:
            self._unseen |= dict.fromkeys(
                (Area.CONNECT, Area.KAFKA, Area.SINKS, Area.DATABASE, Area.POOLER, Area.CLUSTER), DOWN
            )
        states = self._states() if up else {}
        cells, refusals = self._cells()
        with self._connect(up) as connect:
            around = Around(self._endpoints, connect, states)
            there = self._there(around)
            planned, more = connectors_of(cells, around, self._checkout)
        refusals += more
        if self._plan is not None and cells and not refusals and Area.CONNECT not in self._unseen:
            refusals += self._refusals(self._plan, cells)
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
            topics=self._topics(there),
            sinks=states,
            machine=self._machine(up),
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
        """Why a race would end before its first trial, by the race's own checks."""
        try:
            with closing(Cluster(self._stack, plan, self._checkout)) as cluster:
                preflight(cluster, cells)
                validate_configs(cluster, cells, lambda line: None)
        except UserError as error:
            return str(error).splitlines()
        return []

    # --- Connect ---

    def _connect(self, up: bool) -> AbstractContextManager[ConnectCluster | None]:
        workers = self._endpoints.connect
        # Requests to a cluster without workers would be retried for a minute.
        states = {state.name: state for state in self._stack.services()} if up else {}
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

    # --- the machine ---

    def _machine(self, up: bool) -> Machine:
        used = self._stack.usage()
        free = used.free_bytes
        if free is None:
            self._unseen[Area.DISK] = NOT_OURS
        if used.machine is None:
            self._unseen[Area.MEMORY] = NOT_OURS
            return Machine(free_bytes=free, least_free_bytes=LEAST_FREE_BYTES)
        _, allowance = container()
        available = psutil.virtual_memory().available
        if allowance is not None and allowance.memory_bytes is not None:
            available = min(available, allowance.memory_bytes)
        return Machine(
            available_bytes=available,
            needed_bytes=0 if up or self._stack.layout is None else needed_bytes(self._stack.layout),
            free_bytes=free,
            least_free_bytes=LEAST_FREE_BYTES,
        )
