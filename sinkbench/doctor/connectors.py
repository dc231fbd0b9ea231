"""Facts about connectors: those that Connect runs, and those that the cells of a plan would create."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sinkbench.doctor.configs import leads_to, sink_of
from sinkbench.doctor.facts import Connector
from sinkbench.errors import ConnectError, PlanError, ServiceError, TargetError
from sinkbench.plan.cells import Cell
from sinkbench.plan.files import read_connector
from sinkbench.services.connect import ConnectCluster, placement
from sinkbench.sinks import sink_kind
from sinkbench.sinks.jdbcurl import jdbc_url
from sinkbench.sinks.values import SinkState
from sinkbench.stack import Endpoints
from sinkbench.trial.cluster import VARIABLE, filled_in
from sinkbench.trial.names import is_ours


@dataclass
class Around:
    """What a configuration is interpreted with: workers (None if they do not answer), and states by sink."""

    endpoints: Endpoints
    connect: ConnectCluster | None
    states: Mapping[str, SinkState]

    def complete(self, connector: Connector) -> Connector:
        """Adds what the connector's configuration leads to: sink, database, pooler and target."""
        raw = {**connector.config}
        # Connectors of other users must not get the stack file's secrets.
        config = self._filled_in(raw, self.endpoints.connect_variables if connector.planned else {})
        sink = connector.sink or sink_of(config)
        state = self.states.get(sink or "", SinkState())
        poolers = [each.pooler.address for each in self.states.values() if each.pooler is not None]
        return replace(
            connector,
            config=config,
            sink=sink,
            url=jdbc_url(config),
            pooled=leads_to(config, raw, next(iter(poolers), None)),
            unsafe=connector.unsafe if connector.planned else state.target,
        )

    def _filled_in(self, raw: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
        """Fills in variables from `known`, the others by the workers if they answer."""
        config = {key: filled_in(value, known) for key, value in raw.items()}
        if self.connect is None or not any(VARIABLE.search(value) for value in config.values()):
            return config
        # A refused configuration is a finding of its own; here its values are only unknown.
        with suppress(ServiceError):
            values = self.connect.validate(config).values
            config |= {key: value for key, value in values.items() if key in config}
        return config


def connectors_there(around: Around) -> list[Connector]:
    """All connectors that Connect has. Raises ServiceError if it does not answer."""
    found: list[Connector] = []
    connect = around.connect
    if connect is None:
        return found
    for name in connect.connectors():
        try:
            config, status = connect.config(name), connect.status(name)
        except ConnectError:
            # A trial's connector may be gone by now.
            continue
        if status is None:
            continue
        connector = Connector(
            name=name,
            label=name,
            config=config,
            tasks=len(status.tasks) or int(config.get("tasks.max", 1)),
            trials=is_ours(name),
            state=status.state,
            # During a rebalance the placement of tasks means nothing.
            placement=placement(status, around.endpoints.worker_ids) if status.settled(len(status.tasks)) else {},
            failed=len(status.failed),
            cause=status.cause(),
        )
        found.append(around.complete(connector))
    return found


def connectors_of(cells: Sequence[Cell], around: Around, checkout: Path) -> tuple[list[Connector], list[str]]:
    """The connectors that a plan's cells would create, and why some could not be created, one line each."""
    found: list[Connector] = []
    refusals: list[str] = []
    unsafe: dict[str, tuple[str, ...]] = {}
    for cell in cells:
        try:
            config = {key: str(value) for key, value in _config_of(cell, checkout).items()}
            if cell.label not in unsafe:
                checkup = sink_kind(cell.sink).checkup
                unsafe[cell.label] = checkup.target(checkout / (cell.target or checkup.file)) if checkup else ()
        except (PlanError, TargetError) as error:
            refusals += str(error).splitlines()
            continue
        connector = Connector(
            name=cell.key,
            label=cell.label,
            config=config,
            tasks=cell.tasks,
            planned=True,
            sink=cell.sink,
            unsafe=unsafe[cell.label],
        )
        found.append(around.complete(connector))
    return found, list(dict.fromkeys(refusals))


def _config_of(cell: Cell, checkout: Path) -> dict[str, object]:
    # A trial's topic is named only when the trial begins.
    config = read_connector(checkout / "connectors" / f"{cell.pipeline}.json")
    return {**config, **cell.overrides, "name": "preflight", "topics": "preflight", "tasks.max": str(cell.tasks)}
