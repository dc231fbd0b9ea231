"""Which forms of records a plan may name, and which a connector's converter and transforms cannot read."""

import json
import re
from pathlib import Path

import pytest

from loadgen.forms import DOCUMENT, FORMS, Form, schema_of
from sinkbench.errors import PlanError
from sinkbench.plan.cells import expand
from sinkbench.plan.connectors import known_pipelines, read_connector
from sinkbench.plan.forms import (
    AFTER,
    CONTENT,
    JDBC,
    JSON_CONVERTER,
    POSITION,
    SCHEMAS,
    UNWRAP,
    check_forms,
    filled_columns,
    misfit,
)
from sinkbench.plan.plan import Plan, load_plan
from sinkbench.settings import CHECKOUT

CONNECTORS = CHECKOUT / "connectors"
COLUMNS = {"postgres": True, "elasticsearch": False}
STRING = "org.apache.kafka.connect.storage.StringConverter"
ROW = "target: postgres/targets/row.sql"
# The forms that the connector files of this checkout can read.
READABLE: dict[str, set[Form]] = {
    "elasticsearch/camel-bulk-json": {"document", "row"},
    "elasticsearch/camel-bulk-json-schema": {"document-schema", "row-schema"},
    "elasticsearch/camel-bulk-debezium": {"document-debezium", "row-debezium"},
    "elasticsearch/camel-bulk-debezium-schema": {
        *("document-schema", "document-debezium-schema", "row-schema", "row-debezium-schema")
    },
    "elasticsearch/aiven-opensearch": {"document", "row"},
    "elasticsearch/confluent": {"document", "row"},
    "postgres/jdbc-document-schema": {"document-schema", "row-schema"},
    "postgres/jdbc-row": {"row-schema", "row-debezium-schema"},
    "postgres/jdbc-row-unwrap": {"row-schema", "row-debezium-schema"},
    "postgres/jdbc-row-content": {"row"},
    "postgres/jdbc-row-debezium-content": {"row-debezium"},
}


def read(folder: Path, *lines: str) -> Plan:
    (folder / "mine.yaml").write_text("\n".join(lines) + "\n")
    return load_plan(folder / "mine.yaml", CONNECTORS)


def json_converter(**more: str) -> dict[str, str]:
    return {"value.converter": JSON_CONVERTER, **more}


NO_SCHEMAS = json_converter(**{SCHEMAS: "false"})
ROW_CONTENT = json_converter(**{CONTENT: json.dumps(schema_of("row"))})


def transform(name: str, **keys: str) -> dict[str, str]:
    """A converter without schemas, followed by this transform."""
    more = {f"transforms.a.{key}": value for key, value in keys.items()}
    return {**NO_SCHEMAS, "transforms": "a", "transforms.a.type": name, **more}


@pytest.mark.parametrize("pipeline", known_pipelines(CONNECTORS))
def test_a_connector_file_reads_the_forms_that_its_converter_is_made_for(pipeline: str) -> None:
    config = {key: str(value) for key, value in read_connector(CONNECTORS / f"{pipeline}.json").items()}
    assert {form for form in FORMS if misfit(config, form) is None} == READABLE.get(pipeline, {DOCUMENT})


IN_COLUMNS = frozenset({"metadata_id", "data_q", "bench_run", "bench_seq", "bench_pad"})


@pytest.mark.parametrize(
    ("pipeline", "form", "columns"),
    [
        ("jdbc", "document", {"payload"}),
        ("jdbc-idempotent", "document", {"payload", *POSITION}),
        ("jdbc-row", "row-schema", IN_COLUMNS),
        ("jdbc-row", "row-debezium-schema", IN_COLUMNS),
        ("jdbc-row-unwrap", "row-debezium-schema", IN_COLUMNS),
        ("jdbc-row-content", "row", IN_COLUMNS),
        # It makes one value of another, more than once.
        ("jdbc-upsert", "document", None),
        ("camel-sql", "document", None),
    ],
)
def test_the_columns_that_a_connector_fills(pipeline: str, form: Form, columns: set[str] | None) -> None:
    config = {key: str(value) for key, value in read_connector(CONNECTORS / "postgres" / f"{pipeline}.json").items()}
    found = filled_columns(config, form)
    if columns is IN_COLUMNS:
        assert len(found) == 15
        assert found > IN_COLUMNS
    else:
        assert found == columns
    # It makes columns itself.
    assert filled_columns({**config, "schema.evolution": "basic"}, form) is None


@pytest.mark.parametrize(
    ("config", "form", "said"),
    [
        ({"value.converter": STRING}, "row-schema", "StringConverter hands the value on as it is"),
        (json_converter(), "row", f"{SCHEMAS} is true by default, and these records have no schema; set it to false"),
        (json_converter(**{SCHEMAS: "True"}), "row", f"{SCHEMAS} is true, and these .* or name form row-schema"),
        (json_converter(**{SCHEMAS: "false"}), "row-schema", "the schema in each record would be data.* name form"),
        (json_converter(**{CONTENT: "{}"}), "row-schema", "is for records without a schema, and these have one"),
        (ROW_CONTENT, "document", "asks for bench_due_us, which these records do not have"),
        (transform(UNWRAP), "document-debezium", "ExtractNewRecordState leaves records without a schema as they are"),
        (transform(AFTER, field="after"), "document", "expects the record in Debezium's envelope, and finds nothing"),
        ({**NO_SCHEMAS, "connector.class": JDBC}, "row", "the JDBC sink writes no record without a schema"),
        (json_converter(**{"connector.class": JDBC}), "document-schema", "no members of members, which have no column"),
        (
            json_converter(**{"connector.class": "x"}),
            "row-debezium-schema",
            f"nothing takes the record .* add {UNWRAP}",
        ),
    ],
)
def test_a_converter_that_does_not_fit_is_named_with_what_to_do(config: dict[str, str], form: Form, said: str) -> None:
    wrong = misfit(config, form)
    assert wrong is not None
    assert re.search(said, wrong), wrong


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"value.converter": "io.confluent.connect.avro.AvroConverter"},
        # Whether this transform makes a struct cannot be seen from here.
        {**transform("my.Transform"), "connector.class": JDBC},
    ],
)
def test_what_cannot_be_seen_from_the_file_is_not_refused(config: dict[str, str]) -> None:
    assert misfit(config, "row") is None


def test_a_pipeline_has_its_own_form_or_the_loads(tmp_path: Path) -> None:
    unwrap = f"  - {{pipeline: postgres/jdbc-row-unwrap, {ROW}}}"
    row = f"  - {{pipeline: postgres/jdbc-row, {ROW}, form: row-debezium-schema}}"
    plan = read(tmp_path, "load: {form: row-schema}", "pipelines:", unwrap, row)
    cells = expand(plan, 3)
    assert [cell.form for cell in cells] == ["row-schema", "row-debezium-schema"]
    assert cells[1].identity()["form"] == "row-debezium-schema"
    check_forms(plan, CONNECTORS, COLUMNS)
    assert read(tmp_path, plan.show()).sha256 == plan.sha256


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [f"pipelines: [{{pipeline: postgres/jdbc-row, {ROW}}}]"],
            r"mine\.yaml:1: postgres/jdbc-row: form document: value\.converter\.schemas\.enable is true",
        ),
        (
            ["pipelines:", "  - {pipeline: postgres/jdbc-row, form: row-schema}"],
            r"mine\.yaml:2: postgres/jdbc-row: form row-schema: .* name a target, as postgres/targets/row\.sql",
        ),
        (
            ["load:", "  form: row-schema", "pipelines: [elasticsearch/camel-bulk-json-schema]"],
            r"mine\.yaml:2: elasticsearch/camel-bulk-json-schema: .* name a form of documents",
        ),
        (
            [f"pipelines: [{{pipeline: postgres/jdbc-row, {ROW}, form: row-schema, overrides: {{{SCHEMAS}: false}}}}]"],
            "so the schema in each record would be data",
        ),
    ],
)
def test_a_pipeline_that_cannot_take_its_form_is_refused_with_its_line(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        check_forms(read(tmp_path, *lines), CONNECTORS, COLUMNS)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["pipelines: [postgres/jdbc]", "load: {form: rows}"],
            r"mine\.yaml:2: load\.form must be 'document', .* found 'rows'; did you mean 'row'",
        ),
        (
            ["pipelines: [postgres/jdbc]", "load: {form: row, changes: {inserts: 0.5, updates: 0.5}}"],
            r"mine\.yaml:2: form: row is made of .* leave out form or load\.changes",
        ),
        (
            ["pipelines:", "  - {pipeline: postgres/jdbc, form: row, rows_before: 5}"],
            r"mine\.yaml:2: form: row is made of .* leave out form or rows_before",
        ),
        (
            ["pipelines:", "  - {pipeline: postgres/jdbc, form: row}", "load: {records: mine.ndjson}"],
            r"mine\.yaml:2: form: row is made of .* leave out form or load\.records",
        ),
        (["pipelines: [postgres/jdbc]", "load: {records: a.ndjson, form: row}"], "'form' is for the records of noaa"),
        (
            ["queries: queries", "pipelines:", "  - {pipeline: postgres/jdbc, form: row-schema}"],
            r"mine\.yaml:3: queries need members of documents, which form row-schema has not",
        ),
    ],
)
def test_a_form_that_does_not_go_with_the_rest_of_the_plan_is_refused(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        read(tmp_path, *lines)


def test_records_of_ones_own_have_no_form(tmp_path: Path) -> None:
    plan = read(tmp_path, f"pipelines: [{{pipeline: postgres/jdbc-row, {ROW}, form: row-schema}}]")
    with pytest.raises(PlanError, match="--records: form of the plan makes records as noaa's are"):
        plan.with_records("mine.ndjson", None)
