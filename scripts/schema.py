"""The JSON Schema of what a run leaves behind: docs/format.schema.json, made from the models of `results`."""

import json
import sys
from pathlib import Path

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from sinkbench.results import RunSummary, TrialRecord


class _Untitled(GenerateJsonSchema):
    """Without titles of fields, which repeat their names."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def format_schema() -> str:
    """The schema as JSON, of summary.json or a line of trials.jsonl; unknown fields are allowed."""
    refs, definitions = models_json_schema(
        [(RunSummary, "serialization"), (TrialRecord, "serialization")], schema_generator=_Untitled
    )
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of sinkbench, format 1: summary.json (RunSummary) or a line of trials.jsonl (TrialRecord)",
        "anyOf": [refs[RunSummary, "serialization"], refs[TrialRecord, "serialization"]],
        **definitions,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(format_schema(), encoding="utf-8")
