"""Which forms of records a plan may name, and which columns a connector fills."""

from pathlib import Path

import pytest

from loadgen.forms import Form
from sinkbench.errors import PlanError
from sinkbench.plan.cells import expand
from sinkbench.plan.checks import POSITION, check_forms, filled_columns, refuse
from sinkbench.plan.entries import read_connector
from sinkbench.plan.plan import Plan, load_plan
from sinkbench.settings import CHECKOUT

CONNECTORS = CHECKOUT / "connectors"
COLUMNS = {"postgres": True, "elasticsearch": False}
ROW = "target: postgres/targets/row.sql"


def read(folder: Path, *lines: str) -> Plan:
    (folder / "mine.yaml").write_text("\n".join(lines) + "\n")
    return load_plan(folder / "mine.yaml", CONNECTORS)


IN_COLUMNS = frozenset({"metadata_id", "data_q", "bench_run", "bench_seq", "bench_pad"})


@pytest.mark.parametrize(
    ("pipeline", "form", "columns"),
    [
        ("jdbc", "document", {"payload"}),
        ("jdbc-idempotent", "document", {"payload", *POSITION}),
        ("reference-copy", "document", {"payload"}),
        ("reference-copy-exactly-once", "document", {"payload", *POSITION}),
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
    made = {**config, "schema.evolution": "basic"}
    assert filled_columns(made, form) is None or pipeline.startswith("reference")


def test_a_pipeline_has_its_own_form_or_the_loads(tmp_path: Path) -> None:
    unwrap = f"  - {{pipeline: postgres/jdbc-row-unwrap, {ROW}}}"
    row = f"  - {{pipeline: postgres/jdbc-row, {ROW}, form: row-debezium-schema}}"
    plan = read(tmp_path, "load: {form: row-schema}", "pipelines:", unwrap, row)
    cells = expand(plan, 3)
    assert [cell.form for cell in cells] == ["row-schema", "row-debezium-schema"]
    assert cells[1].identity()["form"] == "row-debezium-schema"
    refuse(check_forms(plan, COLUMNS))
    assert read(tmp_path, plan.show()).sha256 == plan.sha256


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["pipelines:", "  - {pipeline: postgres/jdbc-row, form: row-schema}"],
            r"mine\.yaml:2: postgres/jdbc-row: form row-schema: .* name a target, as postgres/targets/row\.sql",
        ),
        (
            ["load:", "  form: row-schema", "pipelines: [elasticsearch/camel-bulk-json-schema]"],
            r"mine\.yaml:2: elasticsearch/camel-bulk-json-schema: .* name a form of documents",
        ),
    ],
)
def test_a_pipeline_that_cannot_take_its_form_is_refused_with_its_line(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        refuse(check_forms(read(tmp_path, *lines), COLUMNS))


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
