"""Records of every form through the connectors that read it: the sink holds each of them once, as it was sent."""

from pathlib import Path
from typing import get_args

import pytest

from loadgen.forms import Form, is_row
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import one_trial

RECORDS = 1_000
ROW = "target: postgres/targets/row.sql"
# A pipeline for each form, and what else it needs.
PIPELINES = {
    "document": "pipeline: elasticsearch/camel-bulk-json",
    "document-schema": "pipeline: postgres/jdbc-document-schema",
    "document-debezium": "pipeline: elasticsearch/camel-bulk-debezium",
    "document-debezium-schema": "pipeline: elasticsearch/camel-bulk-debezium-schema",
    "row": f"pipeline: postgres/jdbc-row-content, {ROW}",
    "row-schema": f"pipeline: postgres/jdbc-row, {ROW}, overrides: {{schema.evolution: basic}}",
    "row-debezium": f"pipeline: postgres/jdbc-row-debezium-content, {ROW}",
    "row-debezium-schema": f"pipeline: postgres/jdbc-row, {ROW}",
}


# Two of them, and in CI all.
TRIED = [
    pytest.param(form, marks=() if form in ("document-debezium-schema", "row-schema") else pytest.mark.long)
    for form in get_args(Form)
]


@pytest.mark.parametrize("form", TRIED)
def test_every_form_is_stored_whole(stack: LocalStack, tmp_path: Path, form: Form) -> None:
    plan = f"pipelines: [{{{PIPELINES[form]}, form: {form}}}]\nload: {{keys: 500}}\n"
    record, _ = one_trial(stack, tmp_path, plan, RECORDS)
    assert record.failure is None
    audit = record.audit
    assert (audit.produced, audit.stored, audit.lost, audit.duplicates, audit.foreign) == (RECORDS, RECORDS, 0, 0, 0)
    # A row bears no checksum: a few are compared with the topic.
    assert audit.checked == (0 if is_row(form) else RECORDS)
    assert (audit.compared > 0, audit.altered) == (True, 0)
    assert any("compared with its checksum" in note for note in record.notes) == is_row(form)
    assert record.form == form
