"""docs/reference.md: every command, every key of a plan and every setting, made from the code that reads them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from typer.cli import get_docs_for_click
from typer.core import TyperGroup
from typer.main import get_command

from loadgen.cli import app as loadgen
from sinkbench.cli import app as sinkbench
from sinkbench.errors import EXIT_CODES
from sinkbench.markdown import markdown_table
from sinkbench.plan import Plan
from sinkbench.settings import PREFIX, Settings

__all__ = ["Key", "keys_of", "reference"]

_DEFAULT = re.compile(r" ?\(default: ([^()]+)\)")
_TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}
_HEADERS = ("key", "type", "default", "allowed", "what it is")

_HEAD = """# Reference

`scripts/reference` makes this page from the code, and a test fails where it is stale. [format.md](format.md) describes
what a run leaves behind, [pipelines.md](pipelines.md) the connector files, [external.md](external.md) the stack files.

- [Commands](#commands)
- [Keys of a plan](#keys-of-a-plan)
- [Settings](#settings)
"""


class Key:
    """One key of a model, in words.

    Attributes:
        name: the dotted key; `[]` stands for each item of a list.
        row: type, default, what is allowed, and what it is; a text each.
    """

    def __init__(self, name: str, schema: Mapping[str, Any], required: bool) -> None:
        described = str(schema.get("description", ""))
        said = _DEFAULT.search(described)
        # What takes the place of a value that is missing may depend on others; then only the description knows it.
        default = said[1] if said else "required" if required else _default(schema)
        self.name = name
        self.row = (_type(schema), default, _allowed(schema), _DEFAULT.sub("", described))


def reference() -> str:
    """The whole page, as Markdown."""
    codes = markdown_table(("exit code", "meaning"), [(str(code), text) for code, text in EXIT_CODES.items()], [0])
    parts = [
        _HEAD,
        "## Commands\n",
        "`--help` of a command prints what is here. Each ends with one of these exit codes, with 1 where it says so.\n",
        "\n".join(codes) + "\n",
        *_commands(get_command(sinkbench), "sinkbench"),
        *_commands(get_command(loadgen), "loadgen"),
        "## Keys of a plan\n",
        "A plan is YAML. `sinkbench race --show FILE` prints one with every key; an unknown key is refused.\n",
        _table(keys_of(Plan)),
        "## Settings\n",
        "Variables of the environment, or lines of a file `.env` in the checkout; the environment wins.\n"
        "`sinkbench settings` prints those in force, and [.env.example](../.env.example) groups them.\n",
        _table(keys_of(Settings), prefix=PREFIX),
    ]
    return "\n".join(parts)


def keys_of(model: type[BaseModel]) -> list[Key]:
    """Every key of a model and of the models in it, each after the one that it is in."""
    schema = model.model_json_schema()
    return list(_keys(schema, schema.get("$defs", {}), ""))


def _keys(schema: Mapping[str, Any], models: Mapping[str, Any], above: str) -> Iterator[Key]:
    for name, field in schema["properties"].items():
        known = _without_null(field)
        yield Key(f"{above}{name}", {**field, **known}, name in schema.get("required", ()))
        for inner, mark in ((known, ""), (known.get("items", {}), "[]")):
            if "$ref" in inner:
                yield from _keys(models[inner["$ref"].rpartition("/")[2]], models, f"{above}{name}{mark}.")


def _without_null(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one of the alternatives that is not null."""
    choices: Sequence[Mapping[str, Any]] = [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]
    return choices[0]


def _type(schema: Mapping[str, Any]) -> str:
    if schema.get("type") == "array":
        return f"list of {_plural(_type(schema['items']))}"
    if "$ref" in schema:
        return "mapping"
    if schema.get("type") == "object":
        return f"mapping to {_type(schema['additionalProperties'])}"
    return "path" if schema.get("format") == "path" else _TYPES[schema["type"]]


def _plural(name: str) -> str:
    return name if name == "text" else f"{name}s"


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default", {})
    if isinstance(default, dict):
        # Of a section each key has its own.
        return "" if "$ref" in schema else "{}"
    return default if isinstance(default, str) else json.dumps(default)


def _allowed(schema: Mapping[str, Any]) -> str:
    if schema.get("type") == "array":
        return ", each ".join(filter(None, ["at least one", _allowed(schema["items"])]))
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "examples" in schema:
        return f"such as {' or '.join(map(str, schema['examples']))}"
    if "maxLength" in schema:
        return f"at most {schema['maxLength']} characters"
    low, above, high = (schema.get(each) for each in ("minimum", "exclusiveMinimum", "maximum"))
    if above is not None and schema.get("type") == "integer":
        low, above = above + 1, None
    found = [f"from {low}" if low is not None else "", f"above {above}" if above is not None else ""]
    return " ".join(filter(None, [*found, "" if high is None else f"to {high}"]))


def _table(keys: Sequence[Key], prefix: str = "") -> str:
    rows = [(f"{prefix}{key.name.upper()}" if prefix else key.name, *key.row) for key in keys]
    headers = ("variable", *_HEADERS[1:]) if prefix else _HEADERS
    return "\n".join(markdown_table(headers, rows, codes=[0])) + "\n"


def _commands(command: Any, name: str) -> Iterator[str]:
    """The sections of a command, or of all commands of a group."""
    context = command.context_class(command, info_name=name)
    if not isinstance(command, TyperGroup):
        yield get_docs_for_click(obj=command, ctx=context, indent=2, name=name).rstrip() + "\n"
        return
    yield f"### `{name}`\n\n{command.help}\n"
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        if found is not None:
            yield from _commands(found, f"{name} {each}")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
