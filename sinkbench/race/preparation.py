"""Checks sinks, plugins, configurations, disk space and faults before a race creates anything."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from sinkbench.analysis.connectors import Offered, misfits
from sinkbench.errors import ConnectError, ServiceError, StackError
from sinkbench.load.records import KeptRecords
from sinkbench.plan import checks
from sinkbench.plan.cells import Cell
from sinkbench.plan.entries import PLUGIN_VERSION, read_connector
from sinkbench.plan.faults import COMMAND, FILL, ISOLATE, OF_NETWORK, OF_SERVICES, PROMOTE, REFUSE, SINK, PlanFault
from sinkbench.plan.plan import FaultsPlan, Plan, kafka_loads
from sinkbench.services.connect import Validation
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import SMALL_DISK, needed, open_sink, sink_kind, sink_kinds, sinks_of
from sinkbench.stack import Say, Stack
from sinkbench.suggest import did_you_mean, nearest
from sinkbench.topology import KafkaNodes, service_of
from sinkbench.trial.cluster import VARIABLE, Cluster, filled_in
from sinkbench.trial.names import Names
from sinkbench.trial.workload import proxy_targets_used

LEAST_FREE_BYTES = 4_000_000_000
PARTITIONS = 24
CONNECTORS = CHECKOUT / "connectors"
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
ELSEWHERE = "the stack's services are no processes of this machine; race on the local stack, or without it"


def check_plan(plan: Plan, cells: Sequence[Cell], stack: Stack, records: KeptRecords | None = None) -> None:
    """Raises PlanError if a sink does not support the plan's targets, settings, forms or connector files, or the stack
    its faults or copies of topics. `records` are your own. Uses no service."""
    kinds, kafka = {kind.name: kind for kind in sink_kinds()}, None if stack.layout is None else stack.layout.kafka
    settable = {name: kind.settable for name, kind in kinds.items()}
    checks.refuse(
        [
            *checks.check_targets(plan, {name: kind.target_ending for name, kind in kinds.items()}),
            *checks.check_settings(plan, settable, lambda service: _place(stack, service)),
            *checks.check_forms(plan, {name: kind.columns for name, kind in kinds.items()}),
            *_misfits(plan, stack, kafka, records),
            *check_faults(plan, cells, stack, CONNECTORS),
            *([f"profile: {ELSEWHERE}"] if plan.profile and stack.profiler is None else []),
            *_check_programs(plan, stack),
            *checks.check_variables(plan, stack.variables, ELSEWHERE),
            *(
                f"{cell.label}: reads_from: {cell.sink} has one node here; race with SINKBENCH_TOPOLOGY=published"
                for cell in cells
                if cell.reads_from == "standby" and not stack.endpoints.sinks[cell.sink].nodes
            ),
        ]
    )


def _place(stack: Stack, service: str) -> str | None:
    """Where a service of others is; None if it is sinkbench's own."""
    if not stack.endpoints.shared:
        return None
    there = stack.endpoints.sinks.get(service)
    return stack.name if there is None else f"{stack.name} ({there.shown})"


def _check_programs(plan: Plan, stack: Stack) -> Iterator[str]:
    """Yields the first load on Kafka alone that this stack cannot have, and why."""
    for index, load in enumerate(kafka_loads(plan)):
        held = "cores" if load.cores is not None else "memory_mb" if load.memory_mb is not None else None
        refused = {
            "perf-test is of Kafka's own programs, which only the local stack runs; use by: loadgen": (
                load.by == "perf-test" and stack.profiler is None
            ),
            f"{held}: only root can limit brokers, on the local stack whose kernel has control groups": (
                held is not None and (stack.faults is None or stack.faults.hold is None)
            ),
            "traffic: opens the brokers' metrics to all of this machine; set SINKBENCH_SECURITY=off": (
                load.traffic and stack.endpoints.kafka_settings
            ),
        }
        if text := next((text for text, is_refused in refused.items() if is_refused), None):
            yield f"{plan.where('kafka', index)}: {text}"
            return


def _misfits(
    plan: Plan, stack: Stack, kafka: KafkaNodes | None, records: KeptRecords | None = None, topics: Sequence[str] = ()
) -> Iterator[str]:
    """Yields why a connector file does not fit the load, the trial's target or the brokers, each with its line."""
    of_sinks, known = {kind.name: kind.misfits for kind in sink_kinds()}, stack.endpoints.connect_variables
    own, keyless = {"topics": Names.of("0123ab_001").topic}, records.keyless(plan.load.key) if records else None
    for entry in plan.pipelines:
        file = {**read_connector(CONNECTORS / f"{entry.pipeline}.json"), **entry.overrides, **own}
        config = {key: filled_in(str(value), known).strip() for key, value in file.items() if value is not None}
        load = Offered(plan.form_of(entry), plan.load.own, keyless, plan.drains)
        found = [*misfits(config, load), *(checks.lone_queue(config, kafka, topics) if kafka else ())]
        if (of_sink := of_sinks.get(entry.sink)) is not None:
            found += of_sink(config, load, stack.endpoints.sinks.get(entry.sink))
        yield from (f"{checks.where_of(plan, entry.shown_name, key, CONNECTORS)}: {key}: {text}" for key, text in found)
    yield from checks.check_copies(plan, kafka) if kafka else ()


def preflight(cluster: Cluster, cells: Sequence[Cell]) -> dict[str, str | None]:
    """Checks that each cell has its sink and its plugin in Connect; returns the plugins' versions by class.

    Raises StackError for an unusable sink, ConnectError for a missing plugin, PlanError for a bad connector file."""
    for cell in cells:
        sink = cluster.sink(cell.sink)
        if cell.settings:
            settings = needed(sink.capabilities.service_settings, "service_settings")
            if (refusal := settings.refusal(cell.settings)) is not None:
                raise StackError(f"{cell.label}: cannot be set as the plan says: {refusal}")
    there = cluster.connect.plugins()
    used: dict[str, set[str]] = {}
    where = "on every worker" if cluster.stack.endpoints.shared else "in connect/plugins and restart the workers"
    for cell in cells:
        config = cluster.config(cell, Names.of("preflight"))
        wanted = config.get("connector.class", "")
        found = next((name for name in there if wanted in _spellings(name)), None)
        if found is None:
            raise ConnectError(
                f"{cell.label}: Connect has no plugin {wanted or '(no connector.class)'}; install it {where}"
                f" (docs/pipelines.md), or leave the pipeline out; its sink connectors:"
                f" {', '.join(sorted(there)) or 'none'}"
            )
        version, problem = version_used(config.get(PLUGIN_VERSION), there[found])
        if problem:
            raise ConnectError(f"{cell.label}: Connect has {found} {problem} {where}")
        used.setdefault(found, set()).add(version or "")
    return {name: ", ".join(sorted(versions)) or None for name, versions in used.items()}


def version_used(wanted: str | None, there: Sequence[str | None]) -> tuple[str | None, str]:
    """The version of a plugin that a connector gets, of those that are there, or why it gets none that is certain, as
    `3.6, but not 3.5; install it`. `wanted` is what its configuration asks for, which Connect may take as a range."""
    names = " and ".join(map(str, there))
    if wanted is None and len(there) > 1:
        return None, f"{names}; set {PLUGIN_VERSION} among the overrides, or leave only one"
    if wanted is None or re.fullmatch(r"[\w.-]+", wanted) is None:
        return (there[0] if len(there) == 1 else wanted), ""
    return wanted, "" if wanted in there else f"{names}, but not {wanted}; install it"


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
        with closing(open_sink(name, stack.endpoints, CHECKOUT)) as sink:
            sink.offer_default()


def _spellings(plugin: str) -> tuple[str, ...]:
    """Connect's names for a plugin: its class, the simple name, and that without "Connector"."""
    simple = plugin.rpartition(".")[2]
    return plugin, simple, simple.removesuffix("Connector")


def validate_configs(cluster: Cluster, cells: Sequence[Cell], say: Callable[[str], None]) -> None:
    """Has Connect validate each pipeline's configuration, and compares it with brokers that no topology names.

    Not every Connect validates. Raises PlanError, with up to five lines, for values refused or overrides not read."""
    wrong: list[str] = []
    if cluster.stack.layout is None:
        kafka, key = cluster.kafka, "min.insync.replicas"
        # It may not be disclosed.
        nodes, least = tuple(map(str, kafka.brokers())), str(kafka.broker_settings([key])[key])
        brokers = KafkaNodes.model_construct(nodes=nodes, min_insync_replicas=int(least) if least.isdigit() else 1)
        wrong += _misfits(cluster.plan, cluster.stack, brokers, cluster.records, kafka.topics())
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
            place = checks.where_of(cluster.plan, cell.label, next(iter(cell.overrides), "config"))
            wrong.append(f"{place}: Connect cannot read the configuration: {error}")
            continue
        wrong += [f"{checks.where_of(cluster.plan, cell.label, key)}: {text}" for key, text in _problems(config, said)]
        # A refused class declares no keys, so all its keys would seem unread.
        if not said.errors:
            for key in unread(cell.overrides, said.listed, parts=_URL not in config):
                near = nearest(key, said.listed | _LISTED)
                meant = f"; did you mean '{near}'?" if near else ""
                text = f"the key '{key}' is known neither to the connector nor to Connect{meant}"
                wrong.append(f"{checks.where_of(cluster.plan, cell.label, key)}: {text}")
    checks.refuse(wrong)


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


_OTHERS = "; name under 'pipelines' those of other sinks"
_ELSEWHERE = "restart, pause, rename, join, refuse, fill of some sinks, poison, command and none"


def check_faults(plan: Plan, cells: Sequence[Cell], stack: Stack, connectors: Path) -> Iterator[str]:
    """Yields why the stack does not support a cell's fault, with line and pipeline. Uses no service."""
    for cell in cells:
        if (fault := cell.fault) is None:
            continue
        try:
            refusal = next(_refusals(cell, fault, stack, connectors), None)
        except StackError as error:
            refusal = str(error)
        if refusal is not None:
            faults = plan.faults if isinstance(plan, FaultsPlan) else (fault,)
            where = plan.where("faults", faults.index(fault))
            yield f"{where}: '{fault.name}' cannot be done to {cell.label}: {refusal}"


def _refusals(cell: Cell, fault: PlanFault, stack: Stack, connectors: Path) -> Iterator[str]:
    """Yields why the stack does not support a fault. Raises StackError if something that it needs is missing."""
    kind, layout = sink_kind(cell.sink), stack.layout
    on = f"on stack {stack.name}{'' if layout is None else f' with the topology {layout.name}'}"
    if fault.what == REFUSE and fault.reason not in kind.refuses:
        how = f" so, only for: {', '.join(kind.refuses)}" if kind.refuses else ""
        yield f"the sink {cell.sink} cannot be set to refuse records{how}{_OTHERS}"
    if fault.what == REFUSE and fault.reason == "no connection" and stack.faults is None:
        yield f"it closes the connections of everybody {on}; only those of sinkbench's own services may be closed"
    if fault.what == FILL and kind.full_disk is None:
        yield f"the sink {cell.sink} has no disk to fill{_OTHERS}"
    if fault.what == FILL and kind.full_disk == SMALL_DISK:
        disks = None if stack.faults is None else stack.faults.small_disks(cell.sink)
        if disks is None:
            yield f"none is small {on}; race on the stack local with one node of {cell.sink}: SINKBENCH_TOPOLOGY=small"
        else:
            disks.check()
    if fault.what == PROMOTE and not any(service.roles for service in kind.services):
        yield f"the sink {cell.sink} has no replica that could be promoted{_OTHERS}"
    if fault.what == PROMOTE and (stack.faults is None or stack.faults.promotion(cell.sink) is None):
        yield f"no replica could be promoted {on}; race on the stack local with SINKBENCH_TOPOLOGY=published"
    if fault.what in OF_NETWORK:
        yield from _without_proxy(cell, stack, connectors)
    if fault.what not in OF_SERVICES:
        return
    if stack.faults is None:
        yield f"the services {on} are other people's; only {_ELSEWHERE} can be"
    elif fault.what == ISOLATE and not stack.faults.can_isolate:
        yield f"the services {on} share one network; freeze it instead, or race in the containers"
    target = service_of(fault.hits)
    if fault.node is not None and layout is None:
        yield f"stack {stack.name} knows no nodes by name; hit worker, kafka or {SINK} instead"
    if fault.node is not None and layout is not None:
        names = [each.name for each in layout.nodes]
        if fault.node not in names:
            yield f"the topology {layout.name} has no node {fault.node}{did_you_mean(fault.node, names)}"
    if target not in ("worker", "workers", "kafka", "connect", SINK, *(each.name for each in kind.services)):
        yield f"it does not write through {fault.target}; name under 'pipelines' those that do"


def _without_proxy(cell: Cell, stack: Stack, connectors: Path) -> Iterator[str]:
    """Yields why no proxy fits between the workers and the cell's sink. Raises StackError if none can be started."""
    proxies = None if stack.faults is None else stack.faults.proxies
    if proxies is None:
        yield f"stack {stack.name} has no proxies from here; race on the stack local, or on the containers' host"
        return
    services = {each.name for each in sink_kind(cell.sink).services}
    targets = {name: each for name, each in proxies.targets.items() if name in services}
    file = read_connector(connectors / f"{cell.pipeline}.json")
    if not proxy_targets_used({**file, **cell.overrides}, cell.sink, targets):
        known = " or ".join(" and ".join(f"${{env:{one}}}" for one in each.variables) for each in targets.values())
        how = f"take it from {known}, or name others under 'pipelines'" if known else "name others under 'pipelines'"
        yield f"its connector file has an address of its own; {how}"
    proxies.check()


def prepare_faults(cells: Sequence[Cell], stack: Stack, say: Say) -> None:
    """Prepares the faults of these cells and reports their commands. Raises StackError."""
    commands = {cell.fault.name: cell.fault for cell in cells if cell.fault is not None and cell.fault.what == COMMAND}
    for name, fault in commands.items():
        say(f"this plan runs commands of its own for '{name}': {fault.command!r}, and then {fault.undo!r}")
    if _use_proxies(cells):
        needed(needed(stack.faults, "faults").proxies, "proxies").prepare(say)


def try_faults(cells: Sequence[Cell], stack: Stack) -> None:
    """Raises StackError if the proxy of network faults does not start. The stack must run."""
    if _use_proxies(cells):
        with needed(needed(stack.faults, "faults").proxies, "proxies").run():
            return


def _use_proxies(cells: Sequence[Cell]) -> bool:
    return any(cell.fault is not None and cell.fault.what in OF_NETWORK for cell in cells)
