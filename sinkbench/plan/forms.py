"""Checks that a connector's converter and transforms fit the form of its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from loadgen.forms import DOCUMENT, Form, has_envelope, has_schema, is_row, schema_of
from loadgen.reading import parse_json
from sinkbench.errors import PlanError
from sinkbench.plan.connectors import read_connector
from sinkbench.plan.plan import Plan

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
# These pass the value on unchanged.
PLAIN_CONVERTERS = (
    "org.apache.kafka.connect.storage.StringConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter",
)
JDBC = "io.debezium.connector.jdbc.JdbcSinkConnector"
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
AFTER = "org.apache.kafka.connect.transforms.ExtractField$Value"
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
# None of them adds a schema to a value, or turns a struct into text.
KAFKAS_OWN = "org.apache.kafka.connect.transforms."
# It drops records, or fails on them.
FILTER = "io.debezium.transforms.Filter"
# The position of a record in Kafka, as Debezium's sink names the columns of such a key.
POSITION = frozenset({"__connect_topic", "__connect_partition", "__connect_offset"})
SCHEMAS, CONTENT = "value.converter.schemas.enable", "value.converter.schema.content"


def check_forms(plan: Plan, connectors: Path, columns: Mapping[str, bool]) -> None:
    """Raises PlanError if a pipeline cannot take, or its sink cannot audit, the form of its records."""
    for index, entry in enumerate(plan.pipelines):
        form = plan.form_of(entry)
        wrong = None
        if is_row(form) and not columns.get(entry.sink, False):
            wrong = f"the sink {entry.sink} is audited by the documents that it holds; name a form of documents"
        elif is_row(form) and entry.target is None:
            wrong = "the sink's own table has no columns for its values; name a target, as postgres/targets/row.sql"
        elif not plan.load.own:
            config = {**read_connector(connectors / f"{entry.pipeline}.json"), **entry.overrides}
            wrong = misfit({key: str(value).strip() for key, value in config.items()}, form)
        if wrong is not None:
            where = plan.where(*(("load", "form") if entry.form is None and form != DOCUMENT else ("pipelines", index)))
            raise PlanError(f"{where}: {entry.shown_name}: form {form}: {wrong}")


def misfit(config: Mapping[str, str], form: Form) -> str | None:
    """Returns why a connector cannot take records of that form; None if its `config` does not show a problem."""
    converter = config.get("value.converter")
    if converter in PLAIN_CONVERTERS:
        name = converter.rpartition(".")[2]
        stored = f"{name} hands the value on as it is, with all that is around the record"
        return None if form == DOCUMENT else f"{stored}; name form {DOCUMENT}, or take JsonConverter"
    if converter != JSON_CONVERTER:
        return None
    return _misread(config, form) or _unwritable(config, form) or _not_unwrapped(config, form)


def filled_columns(config: Mapping[str, str], form: Form) -> frozenset[str] | None:
    """Returns the columns into which a connector writes records of that form, in lower case; None if not clear.

    Debezium's JDBC sink writes the members of a struct: the record, or the field into which `HoistField` puts it.
    """
    kinds = list(_transforms(config).values())
    if config.get("connector.class") != JDBC or config.get("schema.evolution", "none") != "none":
        return None
    if not all(kind in (UNWRAP, FILTER) or kind.startswith(KAFKAS_OWN) for kind in kinds):
        return None
    key = (
        POSITION if config.get("primary.key.mode") == "kafka" and not config.get("primary.key.fields") else frozenset()
    )
    of_value = [name for name, kind in _transforms(config).items() if kind.endswith("$Value")]
    if len(of_value) == 1 and HOIST in kinds:
        return key | {config.get(f"transforms.{of_value[0]}.field", "").lower()}
    if is_row(form) and HOIST not in kinds:
        return key | {str(field["field"]).lower() for field in schema_of("row")["fields"]}
    return None


def _misread(config: Mapping[str, str], form: Form) -> str | None:
    """Returns why JsonConverter fails on the records, or takes their schema for data."""
    # The default of Kafka Connect.
    expects = config.get(SCHEMAS, "true").lower() != "false"
    if expects and config.get(CONTENT):
        if has_schema(form):
            return f"{CONTENT} is for records without a schema, and these have one; leave either out"
        lacking = sorted(_required(config[CONTENT]) - {field["field"] for field in schema_of(form)["fields"]})
        return (
            f"{CONTENT} asks for {lacking[0]}, which these records do not have; give their schema" if lacking else None
        )
    if expects and not has_schema(form):
        found = f"{SCHEMAS} is true{'' if SCHEMAS in config else ' by default'}, and these records have no schema"
        return f"{found}; set it to false, give the schema as {CONTENT}, or name form {form}-schema"
    if not expects and has_schema(form):
        plain = form.removesuffix("-schema")
        return f"{SCHEMAS} is false, so the schema in each record would be data; set it to true, or name form {plain}"
    return None


def _not_unwrapped(config: Mapping[str, str], form: Form) -> str | None:
    """Returns why the record stays in its envelope, or is expected in a missing one."""
    kinds = _transforms(config)
    after = any(kind == AFTER and config.get(f"transforms.{name}.field") == "after" for name, kind in kinds.items())
    unwrap = UNWRAP in kinds.values()
    if not has_envelope(form):
        wrong = f"{AFTER} expects the record in Debezium's envelope, and finds nothing"
        return f"{wrong}; leave it out, or name a form with -debezium" if after else None
    if after:
        return None
    structs = _makes_structs(config)
    if unwrap and not structs:
        return f"{UNWRAP} leaves records without a schema as they are; take {AFTER} with field after"
    if unwrap or (structs and config.get("connector.class") == JDBC and _keeps_structs(kinds.values())):
        return None
    return f"nothing takes the record out of Debezium's envelope; add {UNWRAP if structs else AFTER} to transforms"


def _unwritable(config: Mapping[str, str], form: Form) -> str | None:
    """Returns why Debezium's JDBC sink, which writes structs of plain values, cannot write the records."""
    if config.get("connector.class") != JDBC:
        return None
    if not all(kind.startswith(KAFKAS_OWN) or kind == UNWRAP for kind in _transforms(config).values()):
        return None
    if not _makes_structs(config):
        return f"the JDBC sink writes no record without a schema; set {SCHEMAS} to true and give one as {CONTENT}"
    if not is_row(form):
        return "the JDBC sink writes no members of members, which have no column; name a form that begins with row"
    return None


def _keeps_structs(kinds: Iterable[str]) -> bool:
    """Whether the transforms keep an envelope, so that the sink unwraps it."""
    return all(kind.startswith(KAFKAS_OWN) and kind != HOIST for kind in kinds)


def _required(content: str) -> set[str]:
    """Required fields in a converter's schema; Connect itself reports an invalid schema."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        return {str(field["field"]) for field in parse_json(content)["fields"] if not field.get("optional")}
    return set()


def _makes_structs(config: Mapping[str, str]) -> bool:
    return config.get(SCHEMAS, "true").lower() != "false"


def _transforms(config: Mapping[str, str]) -> dict[str, str]:
    names = [name.strip() for name in config.get("transforms", "").split(",") if name.strip()]
    return {name: config.get(f"transforms.{name}.type", "") for name in names}
