"""docs/reference.md and .env.example, made from the code: every command, every key of a plan, every setting."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from typer.cli import get_docs_for_click
from typer.core import TyperGroup
from typer.main import get_command

from loadgen.cli import app as loadgen
from sinkbench.analysis.query import Query
from sinkbench.cli.main import app as sinkbench
from sinkbench.errors import EXIT_CODES
from sinkbench.plan.plan import MODES, Plan
from sinkbench.settings import CHECKOUT, PREFIX, Settings
from sinkbench.tables.markdown import markdown_table

_DEFAULT = re.compile(r" ?\(default: ([^()]+)\)")
_TEXT_OR_NUMBER = "text or number"
_TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    _TEXT_OR_NUMBER: _TEXT_OR_NUMBER,
}

_HEADERS = ("key", "type", "default", "allowed", "what it is")

_HEAD = """# Reference

`scripts/reference` makes this page from the code, and a test fails where it is stale. [format.md](format.md) describes
what a run leaves behind, [pipelines.md](pipelines.md) the connector files, [external.md](external.md) the stack files.

- [Commands](#commands)
- [Keys of a plan](#keys-of-a-plan)
- [Keys of a query](#keys-of-a-query)
- [Settings](#settings)
"""

_ENV = """\
# Settings of `docker compose` and of sinkbench: copy this file to `.env` and remove the # of a line. Values are the
# defaults. The environment wins over `.env`; `sinkbench settings` prints what is in force.
# Made by `scripts/reference`; docs/reference.md has the same list.

# Read by docker-compose.yml alone: the engine's socket, which gives the controller's container CPU times and states.
#DOCKER_SOCKET=/var/run/docker.sock
"""


_MOVED = """\
A checkout that was moved or copied has a `.venv` whose programs are those of the old folder: run `scripts/setup`, which
makes it anew. Files that you write must be UTF-8 text of at most a megabyte (YAML 256 KiB), or come through a pipe.
"""


# What every command's help says, too: its usage, and the heads of its lists.
_COMMON = re.compile(r"\*\*Usage\*\*:\n\n```console\n.*?\n```\n\n|\*\*\w+\*\*:\n\n|\* `--help`: .*\n", re.DOTALL)


class Key:
    """One key of a model, in words.

    Attributes:
        name: the dotted key; `[]` stands for each item of a list.
        row: type, default, what is allowed, and what it is.
        modes: the modes of a plan that have it.
    """

    def __init__(self, name: str, schema: Mapping[str, Any], required: bool) -> None:
        described = str(schema.get("description", ""))
        said = _DEFAULT.search(described)
        # A default that depends on other values stands in the description.
        default = said[1] if said else "required" if required else _default(schema)
        self.name = name
        self.modes: list[str] = []
        self.row = (_type(schema), default, _allowed(schema), _DEFAULT.sub("", described))


def reference() -> str:
    codes = markdown_table(("exit code", "meaning"), [(str(code), text) for code, text in EXIT_CODES.items()], [0])
    parts = [
        _HEAD,
        "## Commands\n",
        "`--help` of a command prints what is here. Each ends with one of these exit codes, with 1 where it says so.\n",
        "\n".join(codes) + "\n",
        _MOVED,
        *_commands(get_command(sinkbench), "sinkbench"),
        *_commands(get_command(loadgen), "loadgen"),
        "## Keys of a plan\n",
        "A plan is YAML. `sinkbench race --show FILE` prints one with every key that its mode has; other keys are"
        " refused. A key without modes is for all of them.\n",
        _plan_table(plan_keys()),
        "## Keys of a query\n",
        "A file `NAME.yaml` in the folder that a plan's `queries` names;"
        " [methods.md](methods.md#equal-jobs) says what is made of it.\n",
        _table([key for key in keys_of(Query) if key.name != "name"]),
        "## Settings\n",
        "Variables of the environment, or lines of a file `.env` in the checkout; the environment wins.\n"
        "`sinkbench settings` prints those in force, and [.env.example](../.env.example) groups them.\n",
        _table(keys_of(Settings), prefix=PREFIX),
    ]
    return "\n".join(parts)


def env_example() -> str:
    """The file .env.example: every setting in a comment, with its default."""
    lines = [
        f"\n# {field.description}\n#{PREFIX}{name.upper()}={field.default}"
        for name, field in Settings.model_fields.items()
    ]
    return _ENV + "\n".join(lines) + "\n"


def keys_of(model: type[BaseModel]) -> list[Key]:
    """Every key of a model, those of a section after it."""
    schema = model.model_json_schema()
    return list(_keys(schema, schema.get("$defs", {}), ""))


def plan_keys() -> list[Key]:
    """Every key of a plan, with the modes that have it."""
    found: list[Key] = []
    of_all = {key.name: key for key in keys_of(Plan)}
    for mode, model in MODES.items():
        place = 0
        for key in keys_of(model):
            # A model allows its own mode only.
            wanted = of_all["mode"] if key.name == "mode" else key
            known = next((each for each in found if (each.name, each.row) == (wanted.name, wanted.row)), None)
            if known is None:
                # After all keys of the section before it.
                while place < len(found) and _top(found[place]) == _top(found[place - 1]) != _top(wanted):
                    place += 1
                found.insert(place, wanted)
            place = found.index(known or wanted) + 1
            (known or wanted).modes.append(mode)
    return found


def _top(key: Key) -> str:
    return re.split(r"[.\[]", key.name)[0]


def _keys(schema: Mapping[str, Any], models: Mapping[str, Any], above: str) -> Iterator[Key]:
    for name, field in schema["properties"].items():
        known = _without_null(field)
        yield Key(f"{above}{name}", {**field, **known}, name in schema.get("required", ()))
        for inner, mark in ((known, ""), (known.get("items", {}), "[]")):
            if "$ref" in inner:
                yield from _keys(models[inner["$ref"].rpartition("/")[2]], models, f"{above}{name}{mark}.")


def _without_null(field: Mapping[str, Any]) -> Mapping[str, Any]:
    choices: Sequence[Mapping[str, Any]] = [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]
    # A value may be text or a number, of either kind.
    return {"type": _TEXT_OR_NUMBER} if len(choices) > 1 else choices[0]


def _type(schema: Mapping[str, Any]) -> str:
    if schema.get("type") == "array":
        return f"list of {_plural(_type(schema['items']))}"
    if "$ref" in schema:
        return "mapping"
    if schema.get("type") == "object":
        values = schema["additionalProperties"]
        known = isinstance(values, dict) and "type" in values
        return f"mapping to {_type(values)}" if known else "mapping"
    return "path" if schema.get("format") == "path" else _TYPES[schema["type"]]


def _plural(name: str) -> str:
    return name if name == "text" else f"{name}s"


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default", {})
    if isinstance(default, dict):
        # The keys of a section have their own.
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


def _plan_table(keys: Sequence[Key]) -> str:
    rows = [(key.name, "" if len(key.modes) == len(MODES) else ", ".join(key.modes), *key.row) for key in keys]
    return "\n".join(markdown_table((_HEADERS[0], "modes", *_HEADERS[1:]), rows, codes=[0])) + "\n"


def _commands(command: Any, name: str) -> Iterator[str]:
    context = command.context_class(command, info_name=name)
    if not isinstance(command, TyperGroup):
        yield _COMMON.sub("", get_docs_for_click(obj=command, ctx=context, indent=2, name=name)).rstrip() + "\n"
        return
    yield f"### `{name}`\n\n{command.help}\n"
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        if found is not None:
            yield from _commands(found, f"{name} {each}")


if __name__ == "__main__":
    (CHECKOUT / "docs" / "reference.md").write_text(reference(), encoding="utf-8")
    (CHECKOUT / ".env.example").write_text(env_example(), encoding="utf-8")
