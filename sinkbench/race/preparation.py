"""Checks sinks, plugins, configurations and disk space before a race creates anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from sinkbench.errors import ConnectError, PlanError, ServiceError, StackError
from sinkbench.plan.cells import Cell
from sinkbench.secrets import redacted
from sinkbench.services.connect import Validation
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import needed, open_sink, sinks_of
from sinkbench.stack import Stack
from sinkbench.suggest import nearest
from sinkbench.trial.cluster import VARIABLE, Cluster
from sinkbench.trial.names import Names

LEAST_FREE_BYTES = 4_000_000_000
PARTITIONS = 24
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


def preflight(cluster: Cluster, cells: Sequence[Cell]) -> dict[str, str | None]:
    """Checks that each cell has its sink and its plugin in Connect; returns the plugins' versions by class.

    Raises StackError for an unusable sink, ConnectError for a missing plugin, and PlanError for a bad connector file.
    """
    for name in dict.fromkeys(cell.sink for cell in cells):
        cluster.sink(name)
    for cell in cells:
        if not cell.settings:
            continue
        settings = needed(cluster.sink(cell.sink).capabilities.service_settings, "service_settings")
        if (refusal := settings.refusal(cell.settings)) is not None:
            raise StackError(f"{cell.label}: cannot be set as the plan says: {refusal}")
    there = cluster.connect.plugins()
    used = {}
    for cell in cells:
        wanted = cluster.config(cell, Names.of("preflight")).get("connector.class", "")
        found = next((name for name in there if wanted in _spellings(name)), None)
        if found is None:
            shared = cluster.stack.endpoints.shared
            where = "on every worker" if shared else "in connect/plugins and restart the workers (docs/pipelines.md)"
            raise ConnectError(
                f"{cell.label}: Connect has no plugin {wanted or '(no connector.class)'}; install it {where}, or"
                f" leave the pipeline out; its sink connectors: {', '.join(sorted(there)) or 'none'}"
            )
        used[found] = there[found]
    return used


def check_disk(stack: Stack) -> None:
    """Raises StackError if the services have too little space for any trial."""
    free = stack.usage().free_bytes
    if free is not None and free < LEAST_FREE_BYTES:
        raise StackError(
            f"{free / 1e9:.1f} GB free where the services keep their data, at least {LEAST_FREE_BYTES / 1e9:.0f} GB "
            "are needed; free some, or (local stack) set SINKBENCH_HOME to a folder on another disk"
        )


def create_named_targets(stack: Stack) -> None:
    """Creates the topic, index and table of the connector files, so that you can post these files manually."""
    if stack.endpoints.shared:
        return
    kafka = Kafka(stack.endpoints.kafka, stack.endpoints.kafka_settings)
    kafka.create_topic("tides", PARTITIONS, stack.endpoints.replication)
    for name in sinks_of(stack.endpoints):
        sink = open_sink(name, stack.endpoints, CHECKOUT)
        sink.offer_default()
        sink.close()


def _spellings(plugin: str) -> tuple[str, ...]:
    """Connect's names for a plugin: its class, the simple name, and that without "Connector"."""
    simple = plugin.rpartition(".")[2]
    return plugin, simple, simple.removesuffix("Connector")


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
