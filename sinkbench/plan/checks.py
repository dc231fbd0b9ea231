"""Checks a plan against its sinks: targets, settings and forms of records; and the columns that a connector fills."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from loadgen.forms import DOCUMENT, Form, is_row, schema_of
from loadgen.reading import read_bytes
from sinkbench.analysis.settable import Settable
from sinkbench.errors import PlanError
from sinkbench.plan.faults import OF_SERVICES, PROMOTE
from sinkbench.plan.plan import FaultsPlan, Plan
from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import shown

JDBC = "io.debezium.connector.jdbc.JdbcSinkConnector"
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
# These neither add a schema to a value nor turn a struct into text; Debezium's filter drops records or fails on them.
_KEEPING = ("org.apache.kafka.connect.transforms.", "io.debezium.transforms.ExtractNewRecordState")
_FILTER = "io.debezium.transforms.Filter"
# The position of a record in Kafka, as Debezium's sink names the columns of such a key.
POSITION = frozenset({"__connect_topic", "__connect_partition", "__connect_offset"})


def check_targets(plan: Plan, endings: Mapping[str, str | None]) -> None:
    """Raises PlanError if a sink takes no target, or none with such a name; `endings` are file name endings by sink."""
    for index, entry in enumerate(plan.pipelines):
        ending = endings.get(entry.sink)
        if entry.target is None or (ending is not None and entry.target.endswith(ending)):
            continue
        where = plan.where("pipelines", index, "target")
        fix = "leave it out" if ending is None else f"name a file that ends in {ending}"
        what = "takes no target" if ending is None else f"takes no target {entry.target}"
        raise PlanError(f"{where}: the sink {entry.sink} {what}; {fix}")


def check_settings(
    plan: Plan, settable: Mapping[str, Mapping[str, Settable]], others_stack: Callable[[], str | None] = lambda: None
) -> None:
    """Raises PlanError if a sink does not support the plan's settings, or they do not survive its faults.

    `settable` lists settings by sink and service; `others_stack` returns the name of an external stack or None."""
    for index, entry in enumerate(plan.pipelines):
        services = settable.get(entry.sink, {})
        for service, given in entry.settings.items():
            where = plan.where("pipelines", index, "settings", service)
            if not services:
                raise PlanError(f"{where}: the sink {entry.sink} takes no settings; leave them out")
            if service not in services:
                hint = did_you_mean(service, services)
                raise PlanError(f"{where}: the sink {entry.sink} has no service '{service}' to set{hint}")
            known = services[service]
            for key, value in given.items():
                line = plan.where("pipelines", index, "settings", service, key)
                if key not in known.settings:
                    raise PlanError(f"{line}: {service} has no setting '{key}'{did_you_mean(key, known.settings)}")
                if not known.settings[key].takes(value):
                    wanted = known.settings[key].in_words
                    raise PlanError(f"{line}: {service}'s {key} must be {wanted}, found {shown(value)}")
            if not known.shared and (name := others_stack()) is not None:
                raise PlanError(
                    f"{where}: {service} is not set on stack {name}, which is external; leave"
                    " it out, or race on a stack of sinkbench's own"
                )
            _check_faults(plan, entry.shown_name, service, known, where)


def _check_faults(plan: Plan, label: str, service: str, known: Settable, where: str) -> None:
    """Raises PlanError if a fault of that pipeline restarts the service, which would lose the setting."""
    for fault in plan.faults if isinstance(plan, FaultsPlan) else ():
        # A pooler reads its file again after a promotion.
        begins_anew = fault.what == PROMOTE or (fault.what in OF_SERVICES and fault.target == service)
        if known.lasts or not begins_anew or not fault.applies_to(label):
            continue
        raise PlanError(
            f"{where}: {service} would lose these settings in the fault '{fault.name}'; leave them out, or name other"
            " pipelines in the fault"
        )


def check_forms(plan: Plan, columns: Mapping[str, bool]) -> None:
    """Raises PlanError if a sink cannot audit the form of a pipeline's records; `columns` are sinks with columns."""
    for index, entry in enumerate(plan.pipelines):
        form = plan.form_of(entry)
        if not is_row(form) or (columns.get(entry.sink, False) and entry.target is not None):
            continue
        wrong = "the sink's own table has no columns for its values; name a target, as postgres/targets/row.sql"
        if not columns.get(entry.sink, False):
            wrong = f"the sink {entry.sink} is audited by the documents that it holds; name a form of documents"
        where = plan.where(*(("load", "form") if entry.form is None and form != DOCUMENT else ("pipelines", index)))
        raise PlanError(f"{where}: {entry.shown_name}: form {form}: {wrong}")


def filled_columns(config: Mapping[str, str], form: Form) -> frozenset[str] | None:
    """Returns the columns into which a connector writes records of that form, in lower case; None if not clear.

    Debezium's JDBC sink writes the members of a struct: the record, or the field into which `HoistField` puts it."""
    names = [name.strip() for name in config.get("transforms", "").split(",") if name.strip()]
    kinds = {name: config.get(f"transforms.{name}.type", "") for name in names}
    if config.get("connector.class") != JDBC or config.get("schema.evolution", "none") != "none":
        return None
    if not all(kind == _FILTER or kind.startswith(_KEEPING) for kind in kinds.values()):
        return None
    by_position = config.get("primary.key.mode") == "kafka" and not config.get("primary.key.fields")
    key = POSITION if by_position else frozenset()
    of_value = [name for name, kind in kinds.items() if kind.endswith("$Value")]
    if len(of_value) == 1 and HOIST in kinds.values():
        return key | {config.get(f"transforms.{of_value[0]}.field", "").lower()}
    if is_row(form) and HOIST not in kinds.values():
        return key | {str(field["field"]).lower() for field in schema_of("row")["fields"]}
    return None


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
