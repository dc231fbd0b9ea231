"""Checks a plan against its sinks and brokers: targets, settings, forms, copies; and the columns a connector fills."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from loadgen.forms import DOCUMENT, Form, is_row, schema_of
from loadgen.reading import read_bytes
from sinkbench.analysis.connectors import JDBC, REFERENCE_COPY, Misfit, Offered, value_of
from sinkbench.analysis.settable import Settable
from sinkbench.analysis.words import counted
from sinkbench.errors import PlanError
from sinkbench.place import CHECKOUT
from sinkbench.plan.faults import OF_SERVICES, PROMOTE
from sinkbench.plan.plan import FaultsPlan, Plan, kafka_loads
from sinkbench.secrets import redacted
from sinkbench.suggest import did_you_mean
from sinkbench.topology import KafkaNodes
from sinkbench.yamlfile import shown

# The position of a record in Kafka, as Debezium's sink names the columns of such a key.
POSITION = frozenset({"__connect_topic", "__connect_partition", "__connect_offset"})
_REPORTED_AT_MOST = 5


def refuse(wrong: Iterable[str]) -> None:
    """Raises PlanError with up to five of the lines, unless there are none."""
    if lines := list(dict.fromkeys(wrong)):
        more = len(lines) - _REPORTED_AT_MOST
        raise PlanError(redacted("\n".join(lines[:_REPORTED_AT_MOST] + ([f"and {more} more"] if more > 0 else []))))


def where_of(plan: Plan, label: str, key: str, connectors: Path = CHECKOUT / "connectors") -> str:
    """The line of the plan or the connector file with a key, or with one that begins as it, and the label."""
    index, entry = next((n, each) for n, each in enumerate(plan.pipelines) if each.shown_name == label)
    file, parts = connectors / f"{entry.pipeline}.json", key.split(".")
    lines = [line.lstrip() for line in file.read_text(encoding="utf-8").splitlines()]
    for end in range(len(parts), min(len(parts), 2) - 1, -1):
        begin = ".".join(parts[:end])
        if (found := next((each for each in entry.overrides if each.startswith(begin)), None)) is not None:
            return f"{plan.where('pipelines', index, 'overrides', found)}: {label}"
        if (number := next((n for n, line in enumerate(lines, 1) if line.startswith(f'"{begin}')), 0)) > 0:
            return f"connectors/{entry.pipeline}.json:{number}: {label}"
    return f"{plan.where('pipelines', index, key)}: {label}"


def check_targets(plan: Plan, endings: Mapping[str, str | None]) -> Iterator[str]:
    """Yields where a sink takes no target, or none with such a name; `endings` are file name endings by sink."""
    for index, entry in enumerate(plan.pipelines):
        ending = endings.get(entry.sink)
        if entry.target is None or (ending is not None and entry.target.endswith(ending)):
            continue
        told = "; leave it out" if ending is None else f" {entry.target}; name a file that ends in {ending}"
        yield f"{plan.where('pipelines', index, 'target')}: the sink {entry.sink} takes no target{told}"


def check_settings(
    plan: Plan, settable: Mapping[str, Mapping[str, Settable]], others: Callable[[str], str | None] = lambda name: None
) -> Iterator[str]:
    """Yields where a sink does not support the plan's settings, or they do not survive its faults.

    `settable` lists settings by sink and service; `others` says where an external service is."""
    for index, entry in enumerate(plan.pipelines):
        services = settable.get(entry.sink, {})
        for service, given in entry.settings.items():
            where = plan.where("pipelines", index, "settings", service)
            if service not in services:
                hint = did_you_mean(service, services) or "; leave it out"
                yield f"{where}: the sink {entry.sink} has no service '{service}' to set{hint}"
                continue
            known = services[service]
            for key, value in given.items():
                line = plan.where("pipelines", index, "settings", service, key)
                if key not in known.settings:
                    yield f"{line}: {service} has no setting '{key}'{did_you_mean(key, known.settings)}"
                elif not known.settings[key].takes(value):
                    wanted = known.settings[key].in_words
                    yield f"{line}: {service}'s {key} must be {wanted}, found {shown(value)}"
            if not known.shared and (name := others(service)) is not None:
                yield (
                    f"{where}: {service} is not set on stack {name}, which is external; set"
                    " it there, leave it out, or race on a stack of sinkbench's own"
                )
            yield from _check_faults(plan, entry.shown_name, service, known, where)


def check_variables(plan: Plan, known: Collection[str], elsewhere: str) -> Iterator[str]:
    """Yields where a plan sets a variable that the stack does not have, or limits, which are of one start of a stack.

    `elsewhere` says why a stack has none."""
    names = {name: index for index, entry in reversed([*enumerate(plan.pipelines)]) for name in entry.variables}
    for name, index in names.items():
        if name not in known:
            text = f"no run script has a variable '{name}'{did_you_mean(name, known)}" if known else elsewhere
            yield f"{plan.where('pipelines', index)}: variables: {text}"
    if names and (plan.limits or plan.mode in ("capacity", "faults")):
        yield f"{plan.where('mode')}: variables need mode drain, rescale or sustain, without limits; leave them out"


def _check_faults(plan: Plan, label: str, service: str, known: Settable, where: str) -> Iterator[str]:
    """Yields where a fault of that pipeline restarts the service, which would lose the setting."""
    for fault in plan.faults if isinstance(plan, FaultsPlan) else ():
        # A pooler reads its file again after a promotion.
        begins_anew = fault.what == PROMOTE or (fault.what in OF_SERVICES and fault.target == service)
        if known.lasts or not begins_anew or not fault.applies_to(label):
            continue
        yield (
            f"{where}: {service} would lose these settings in the fault '{fault.name}'; leave them out, or name other"
            " pipelines in the fault"
        )


def check_forms(plan: Plan, columns: Mapping[str, bool]) -> Iterator[str]:
    """Yields where a sink cannot audit the form of a pipeline's records; `columns` are sinks with columns."""
    for index, entry in enumerate(plan.pipelines):
        form = plan.form_of(entry)
        if not is_row(form) or (columns.get(entry.sink, False) and entry.target is not None):
            continue
        wrong = "the sink's own table has no columns for its values; name a target, as postgres/targets/row.sql"
        if not columns.get(entry.sink, False):
            wrong = f"the sink {entry.sink} is audited by the documents that it holds; name a form of documents"
        where = plan.where(*(("load", "form") if entry.form is None and form != DOCUMENT else ("pipelines", index)))
        yield f"{where}: {entry.shown_name}: form {form}: {wrong}"


def check_copies(plan: Plan, kafka: KafkaNodes) -> Iterator[str]:
    """Yields why a trial's topic would have more copies than brokers, or too few for acks: all."""
    copies, brokers, least = plan.load.replication or kafka.replication, len(kafka.nodes), kafka.min_insync_replicas
    load = f"{plan.where('load', 'replication')}: load.replication is {copies}"
    if copies > brokers:
        yield f"{load}, and Kafka has {counted(brokers, 'broker')}; lower it to {brokers}"
    elif copies < least and any(plan.acks_of(entry) == "all" for entry in plan.pipelines):
        text = f"with acks: all Kafka takes no record below its min.insync.replicas, {least}"
        yield f"{load}, and {text}; set it to {least} or more, or acks to 1"
    loads = kafka_loads(plan)
    most = max((each.brokers or each.replication for each in loads), default=0)
    topology = "brokers" if most <= 3 else "five-brokers"
    for index, each in enumerate(loads):
        for key, wanted in {"replication": each.replication, "brokers": each.brokers or 0}.items():
            if wanted > brokers:
                found = f"{key} is {wanted}, and Kafka has {counted(brokers, 'broker')}"
                yield f"{plan.where('kafka', index)}: {found}; race with SINKBENCH_TOPOLOGY={topology}"


def lone_queue(config: Mapping[str, str], kafka: KafkaNodes, topics: Collection[str] = ()) -> Iterator[Misfit]:
    """Yields why Connect cannot make a connector's dead letter queue, unless it is among the `topics`."""
    queue, key = config.get("errors.deadletterqueue.topic.name"), "errors.deadletterqueue.topic.replication.factor"
    said, brokers, least = config.get(key, "3"), len(kafka.nodes), kafka.min_insync_replicas
    if queue and queue not in topics and said.isdigit() and not least <= int(said) <= brokers:
        text = f"is {said}{'' if key in config else ' by default'}, and Kafka has {counted(brokers, 'broker')}"
        yield key, f"{text} and min.insync.replicas {least}; set it to -1, Kafka's own default"


def filled_columns(config: Mapping[str, str], form: Form) -> frozenset[str] | None:
    """Returns the columns into which a connector writes records of that form, in lower case; None if not clear.

    Debezium's JDBC sink writes the members of a struct: the record, or the field into which `HoistField` puts it. The
    reference connector writes the value into one column."""
    if config.get("connector.class") == REFERENCE_COPY:
        column, upserts = config.get("column", "payload"), config.get("write") == "upsert"
        once = config.get("delivery") == "exactly-once-effect"
        key = {config.get("key.column", "key").lower()} if upserts else POSITION if once else set()
        return frozenset({column.lower(), *key})
    value = value_of(config, Offered(form))
    if config.get("connector.class") != JDBC or config.get("schema.evolution", "none") != "none":
        return None
    if value is None or value.kind != "struct":
        return None
    by_position = config.get("primary.key.mode") == "kafka" and not config.get("primary.key.fields")
    key = POSITION if by_position else frozenset()
    if value.hoisted is not None:
        return key | {value.hoisted.lower()}
    return key | {str(field["field"]).lower() for field in schema_of("row")["fields"]} if is_row(form) else None


def file_hashes(plan: Plan, checkout: Path) -> dict[str, str]:
    """Returns the SHA-256 of each target and query file of a plan as a hex digest. Raises PlanError."""
    names = [entry.target for entry in plan.pipelines if entry.target is not None]
    if plan.queries is not None:
        names += [f"{plan.queries}/{file.name}" for file in sorted((checkout / plan.queries).glob("*.yaml"))]
    found = {}
    for name in dict.fromkeys(names):
        try:
            found[name] = hashlib.sha256(read_bytes(checkout / name, PlanError)).hexdigest()
        except FileNotFoundError:
            raise PlanError(f"{name}: there is no such file any more; restore it, or take it out of the plan") from None
    return found
