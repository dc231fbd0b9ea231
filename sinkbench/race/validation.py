"""Connect validates the connectors' configurations before a race creates anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from sinkbench.errors import PlanError, ServiceError
from sinkbench.plan.cells import Cell
from sinkbench.race.keys import URL, beans_named, check_keys, check_url
from sinkbench.secrets import redacted
from sinkbench.services.connect import Validation
from sinkbench.trial.cluster import VARIABLE, Cluster
from sinkbench.trial.names import Names

_REPORTED_AT_MOST = 5


def validate_configs(cluster: Cluster, cells: Sequence[Cell], say: Callable[[str], None]) -> dict[str, JsonValue]:
    """Has Connect validate the configuration of each pipeline once; returns unconfirmed keys by the pipeline's label.

    `say` gets the unconfirmed keys, or why none was checked: not every Connect validates. Raises PlanError, with up to
    five lines, if a key is unread or Connect refuses a value.
    """
    unconfirmed: dict[str, tuple[str, ...]] = {}
    wrong: list[str] = []
    for cell in {cell.label: cell for cell in cells}.values():
        names = Names.of("preflight")
        config = {**cluster.config(cell, names), "name": names.connector}
        try:
            said = cluster.connect.validate(config)
        except ServiceError as error:
            if not _validates(cluster, config):
                say(f"the keys of connectors are not checked: Connect does not validate {cell.label}: {error}")
                break
            # A value that a client of Kafka cannot read becomes no error of a key.
            wrong.append(f"{_where(cluster, cell, *cell.overrides)}: Connect cannot read the configuration: {error}")
            continue
        wrong += [f"{_where(cluster, cell, key)}: {problem}" for key, problem in _problems(config, said)]
        checked = check_keys(config, said.listed, cell.overrides, beans_named(map(str, config.values())))
        options = check_url(config.get(URL, ""))
        # A class that is refused declares no keys, so that its keys would seem to be unread.
        if not said.errors:
            wrong += [f"{_where(cluster, cell, key)}: the key '{key}' {why}" for key, why in checked.unread.items()]
        wrong += [f"{_where(cluster, cell, URL)}: '{option}' {why}" for option, why in options.unread.items()]
        if found := (*checked.unconfirmed, *options.unconfirmed):
            unconfirmed[cell.label] = found
    if wrong:
        more = len(wrong) - _REPORTED_AT_MOST
        raise PlanError(redacted("\n".join(wrong[:_REPORTED_AT_MOST] + ([f"and {more} more"] if more > 0 else []))))
    for label, keys in unconfirmed.items():
        say(f"{label}: unconfirmed keys {', '.join(keys)}; a key that is not read changes nothing")
    return {label: list(keys) for label, keys in unconfirmed.items()}


def _problems(config: Mapping[str, str], said: Validation) -> Iterator[tuple[str, str]]:
    """Each key whose value Connect refuses, or whose variable it does not know, and why."""
    for key, errors in said.errors.items():
        yield key, f"Connect refuses '{key}': {'; '.join(errors)}"
    for key, value in said.values.items():
        # A key whose value is refused is named already.
        for name in VARIABLE.findall(value if key in config and key not in said.errors else ""):
            mend = "give it to them, or to connect.variables of a stack file"
            yield key, f"'{key}' needs the variable {name}, which the workers do not know; {mend}"


def _validates(cluster: Cluster, config: Mapping[str, str]) -> bool:
    """Whether Connect validates anything: the same connector, without what is particular to this configuration."""
    try:
        cluster.connect.validate({key: config[key] for key in ("connector.class", "name", "topics")})
    except ServiceError:
        return False
    return True


def _where(cluster: Cluster, cell: Cell, *keys: str) -> str:
    """Where keys come from: the line of the plan if they are overrides, or the connector file."""
    if not keys or not cell.overrides.keys() >= set(keys):
        return f"connectors/{cell.pipeline}.json"
    index = next(n for n, entry in enumerate(cluster.plan.pipelines) if entry.shown_name == cell.label)
    return f"{cluster.plan.where('pipelines', index, 'overrides', keys[0])}: {cell.label}"
