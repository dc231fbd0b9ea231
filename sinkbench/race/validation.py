"""Has Connect validate the connectors' configurations before a race creates anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from sinkbench.errors import PlanError, ServiceError
from sinkbench.plan.cells import Cell
from sinkbench.secrets import redacted
from sinkbench.services.connect import Validation
from sinkbench.suggest import nearest
from sinkbench.trial.cluster import VARIABLE, Cluster
from sinkbench.trial.names import Names

_REPORTED_AT_MOST = 5
# Keys of Kafka's consumer that a plan may vary. Connect says whether the consumer knows a key, but lists none.
_TUNING = (
    *("fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "group.protocol", "isolation.level"),
    *("max.partition.fetch.bytes", "max.poll.interval.ms", "max.poll.records"),
    *("partition.assignment.strategy", "receive.buffer.bytes", "session.timeout.ms"),
)
_LISTED = frozenset(f"consumer.override.{key}" for key in _TUNING)
# Prefixes of keys that Connect does not list: other clients, Hibernate, naming strategies, and Camel, which checks its
# own ones at the start. Only newer workers list the keys of converters.
_HANDED_ON = (
    *("producer.override.", "admin.override.", "hibernate.", "collection.naming.strategy.", "column.naming.strategy."),
    *(f"camel.{each}." for each in ("beans", "component", "context", "dataformat", "health", "language", "main")),
)
_CONVERTERS = ("key.converter.", "value.converter.", "header.converter.")
# Parts from which Camel builds its URL, if it is not given whole.
_URL, _PARTS_OF_URL = "camel.sink.url", ("camel.sink.endpoint.", "camel.sink.path.")


def validate_configs(cluster: Cluster, cells: Sequence[Cell], say: Callable[[str], None]) -> None:
    """Has Connect validate each pipeline's configuration.

    Not every Connect validates. Raises PlanError, with up to five lines, if nothing reads an override of the plan, or
    Connect refuses a value.
    """
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
        # A refused class declares no keys, so all its keys would seem unread.
        if not said.errors:
            for key in unread(cell.overrides, said.listed, parts=_URL not in config):
                near = nearest(key, said.listed | _LISTED)
                meant = f"; did you mean '{near}'?" if near else ""
                text = f"the key '{key}' is known neither to the connector nor to Connect{meant}"
                wrong.append(f"{_where(cluster, cell, key)}: {text}")
    if wrong:
        more = len(wrong) - _REPORTED_AT_MOST
        raise PlanError(redacted("\n".join(wrong[:_REPORTED_AT_MOST] + ([f"and {more} more"] if more > 0 else []))))


def unread(overrides: Collection[str], listed: Collection[str], *, parts: bool = False) -> list[str]:
    """The overrides that nothing reads, given the keys that Connect lists; `parts` if Camel's URL comes in parts."""
    handed_on = _HANDED_ON + tuple(each for each in _CONVERTERS if not any(key.startswith(each) for key in listed))
    handed_on += _PARTS_OF_URL if parts else ()
    return [key for key in overrides if key not in listed and key not in _LISTED and not key.startswith(handed_on)]


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
