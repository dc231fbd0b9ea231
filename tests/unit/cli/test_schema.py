"""The schema of what a run leaves behind, as it is kept in docs/."""

import json
from pathlib import Path

from scripts.schema import format_schema
from sinkbench.results import RunSummary, TrialRecord

SCHEMA = Path(__file__).parents[3] / "docs" / "format.schema.json"


def test_the_schema_is_that_of_the_models() -> None:
    assert SCHEMA.read_text() == format_schema(), "docs/format.schema.json is stale; run scripts/schema"


def test_the_schema_knows_every_field_and_lets_defaults_be_missing() -> None:
    models = json.loads(format_schema())["$defs"]
    assert models["TrialRecord"]["properties"].keys() == {*TrialRecord.model_fields, "invalid"}
    assert models["RunSummary"]["required"] == ["run", "complete", "plan", "cells"]
    assert models["RunSummary"]["properties"].keys() == RunSummary.model_fields.keys()
