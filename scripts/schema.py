"""The JSON Schema of what a run leaves behind: docs/format.schema.json, made from the models of `results`."""

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from sinkbench.results import RunSummary, TrialRecord
from sinkbench.results.base import Record


def _docstrings(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """The fields of a model and of those that it extends, each with the docstring below it. pydantic reads them, too,
    but whenever a model is imported, which took a tenth of a second of every command."""
    for each in [each for each in reversed(model.__mro__) if issubclass(each, Record)]:
        (definition,) = ast.parse(inspect.getsource(each)).body
        for field, below in pairwise(definition.body if isinstance(definition, ast.ClassDef) else []):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                yield ast.unparse(field.target), inspect.cleandoc(ast.literal_eval(below.value))


class _Described(GenerateJsonSchema):
    """With the docstrings of fields, and without their titles, which repeat their names."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        for name, text in _docstrings(schema["cls"]):
            made["properties"][name] = {"description": text, **made["properties"][name]}
        return made


def format_schema() -> str:
    """The schema as JSON, of summary.json or a line of trials.jsonl; unknown fields are allowed."""
    refs, definitions = models_json_schema(
        [(RunSummary, "serialization"), (TrialRecord, "serialization")], schema_generator=_Described
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
