"""Which forms of records a plan may name, and which columns a connector fills."""

from pathlib import Path

import pytest

from loadgen.forms import Form
from sinkbench.errors import PlanError
from sinkbench.plan.cells import expand
from sinkbench.plan.checks import POSITION, check_forms, filled_columns, refuse
from sinkbench.plan.entries import read_connector
from sinkbench.plan.plan import Plan
from sinkbench.settings import CHECKOUT
from tests.support.trials import plan_in

CONNECTORS = CHECKOUT / "connectors"
COLUMNS = {"postgres": True, "elasticsearch": False}
ROW = "target: postgres/targets/row.sql"


def read(folder: Path, *lines: str) -> Plan:
    return plan_in(folder, "\n".join(lines) + "\n")


def entry(keys: str) -> str:
    """A pipeline of PostgreSQL with these keys, in its second line."""
    return f"pipelines:\n  - {{pipeline: postgres/{keys}}}"


CHANGES = "changes: {inserts: 0.5, updates: 0.5}"
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
    assert found == columns or (columns is IN_COLUMNS and len(found) == 15 and found > IN_COLUMNS)
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


JDBC = "pipelines: [postgres/jdbc]"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([JDBC, "load: {form: rows}"], "load.form must be 'document', .* found 'rows'; did you mean 'row'"),
        ([JDBC, "load: {records: a.ndjson, form: row}"], "'form' is for the records of noaa"),
        ([JDBC, f"load: {{form: row, {CHANGES}}}"], "form: row is made of .* leave out form or load.changes"),
        ([entry("jdbc, form: row, rows_before: 5")], "form: row is made of .* leave out form or rows_before"),
        ([entry("jdbc, form: row"), "load: {records: a.json}"], "form: row is made of .* leave out form or load.rec"),
        ([entry("jdbc, form: row"), "queries: queries"], "queries need members of documents, which form row has not"),
        # What only the connector shows.
        ([entry("jdbc-row, form: row-schema")], "postgres/jdbc-row: form row-schema: .* name a target, as postgres/"),
        (
            ["load:", "  form: row-schema", "pipelines: [elasticsearch/camel-bulk-json-schema]"],
            "elasticsearch/camel-bulk-json-schema: .* name a form of documents",
        ),
    ],
)
def test_a_form_that_does_not_go_with_the_rest_of_the_plan_is_refused_with_its_line(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises(PlanError, match=rf"mine\.yaml:2: {said}"):
        refuse(check_forms(read(tmp_path, *lines), COLUMNS))


@pytest.mark.parametrize(
    ("line", "made"),
    [(entry(f"jdbc-row, {ROW}, form: row-schema"), "form"), (f"{JDBC}\nload: {{{CHANGES}}}", r"load\.changes")],
)
def test_records_of_ones_own_go_with_no_plan_that_makes_noaas(line: str, made: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=f"--records: {made} of the plan makes records as noaa's are; name a plan"):
        read(tmp_path, line).with_records("mine.ndjson", None)
