"""The JSON Schema of what a run leaves behind: docs/format.schema.json, made from the models of `results`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from sinkbench.results import RunSummary, TrialRecord

__all__ = ["format_schema"]


class _Untitled(GenerateJsonSchema):
    """Without a title for each field, which only says its name again."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def format_schema() -> str:
    """The schema as JSON: a document is the content of summary.json or a line of trials.jsonl.

    Fields with a default may be missing, as in files of an earlier sinkbench; fields that are not known may be there.
    """
    refs, definitions = models_json_schema(
        [(RunSummary, "validation"), (TrialRecord, "validation")], schema_generator=_Untitled
    )
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of sinkbench, format 1: summary.json (RunSummary) or a line of trials.jsonl (TrialRecord)",
        "anyOf": [refs[RunSummary, "validation"], refs[TrialRecord, "validation"]],
        **definitions,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(format_schema(), encoding="utf-8")
