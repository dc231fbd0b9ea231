"""Has Connect validate the connectors' configurations before a race creates anything."""

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
    """Validates each pipeline's configuration; returns unconfirmed keys by the pipeline's label.

    Not every Connect validates. Raises PlanError, with up to five lines, if a key is unread or Connect refuses a value.
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
            # A value that a Kafka client cannot parse is not reported as an error of a key.
            wrong.append(f"{_where(cluster, cell, *cell.overrides)}: Connect cannot read the configuration: {error}")
            continue
        wrong += [f"{_where(cluster, cell, key)}: {problem}" for key, problem in _problems(config, said)]
        checked = check_keys(config, said.listed, cell.overrides, beans_named(map(str, config.values())))
        options = check_url(config.get(URL, ""))
        # A refused class declares no keys, so all its keys would seem unread.
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
    """Yields each key whose value Connect refuses or whose variable it does not know, and why."""
    for key, errors in said.errors.items():
        yield key, f"Connect refuses '{key}': {'; '.join(errors)}"
    for key, value in said.values.items():
        # A refused key is reported already.
        for name in VARIABLE.findall(value if key in config and key not in said.errors else ""):
            fix = "give it to them, or to connect.variables of a stack file"
            yield key, f"'{key}' needs the variable {name}, which the workers do not know; {fix}"


def _validates(cluster: Cluster, config: Mapping[str, str]) -> bool:
    """Whether Connect validates at all, tried with the same connector and no other keys."""
    try:
        cluster.connect.validate({key: config[key] for key in ("connector.class", "name", "topics")})
    except ServiceError:
        return False
    return True


def _where(cluster: Cluster, cell: Cell, *keys: str) -> str:
    """Where keys come from: the line of the plan, or the connector file."""
    if not keys or not cell.overrides.keys() >= set(keys):
        return f"connectors/{cell.pipeline}.json"
    index = next(n for n, entry in enumerate(cluster.plan.pipelines) if entry.shown_name == cell.label)
    return f"{cluster.plan.where('pipelines', index, 'overrides', keys[0])}: {cell.label}"
