"""docs/reference.md and .env.example, made from the code: every command, every key of a plan, every setting."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from sinkbench.analysis.query import Query
from sinkbench.errors import EXIT_CODES
from sinkbench.plan.plan import MODES, Plan
from sinkbench.settings import CHECKOUT, PREFIX, Settings

_DEFAULT = re.compile(r" ?\(default: ([^()]+)\)")
_TEXT_OR_NUMBER = "text or number"
_TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    _TEXT_OR_NUMBER: _TEXT_OR_NUMBER,
}

_HEAD = """# Reference

`scripts/reference` writes this page. See also the [files of a run](format.md), the
[connector files](pipelines.md) and the [stack files](where.md#your-own-clusters).

"""

_COMMANDS = """## Commands

`sinkbench --help` and `loadgen --help` list the commands, and `--help` of a command prints its arguments and options.
"""

_PLAN = """## Keys of a plan

A plan is a YAML file of at most 256 KiB. `sinkbench race --show FILE` prints a plan with every key of its mode.
If only some modes have a key, its description begins with them. `target` and `queries` are relative to the plan or the
checkout. [faults.md](faults.md#what-each-fault-does) describes the faults.
"""

_QUERY = """## Keys of a query

A query is a file `NAME.yaml` in the folder of the plan's `queries`. See [Equal jobs](methods.md#equal-jobs).
"""

_SETTINGS = """## Settings

[.env.example](../.env.example) lists every setting with its default. Copy it to `.env` in the checkout, or set
environment variables, which take precedence. `sinkbench settings` prints the settings in force.
"""

_ENV = """\
# Settings of `docker compose` and of sinkbench: copy this file to `.env` and remove the # of a line. Values are the
# defaults. The environment wins over `.env`; `sinkbench settings` prints what is in force.
# Made by `scripts/reference`.

# Read by docker-compose.yml alone: the engine's socket, which gives the controller's container CPU times and states.
#DOCKER_SOCKET=/var/run/docker.sock
"""


@dataclass
class Key:
    """One key of a model: its dotted name, `[]` for each item of a list; type, default and meaning in words; and the
    modes of a plan that have it."""

    name: str
    row: tuple[str, str, str]
    modes: list[str] = field(default_factory=list)


def reference() -> str:
    parts = [
        _HEAD,
        _COMMANDS,
        "Exit codes: " + "; ".join(f"{code} {text}" for code, text in EXIT_CODES.items()) + ".\n",
        _PLAN,
        _key_list(_with_modes(plan_keys())),
        _QUERY,
        _key_list([(key.name, *key.row) for key in keys_of(Query) if key.name != "name"]),
        _SETTINGS,
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
    found: dict[object, Key] = {}
    of_all = {key.name: key for key in keys_of(Plan)}
    for mode, model in MODES.items():
        for key in keys_of(model):
            # A model allows its own mode only.
            wanted = of_all["mode"] if key.name == "mode" else key
            found.setdefault((wanted.name, wanted.row), wanted).modes.append(mode)
    sections = list(dict.fromkeys(map(_top, found.values())))
    return sorted(found.values(), key=lambda key: sections.index(_top(key)))


def _top(key: Key) -> str:
    return re.split(r"[.\[]", key.name)[0]


def _keys(schema: Mapping[str, Any], models: Mapping[str, Any], above: str) -> Iterator[Key]:
    for name, given in schema["properties"].items():
        known = _without_null(given)
        whole = {**given, **known}
        described = str(whole.get("description", ""))
        said = _DEFAULT.search(described)
        # A default that depends on other values stands in the description.
        default = said[1] if said else "required" if name in schema.get("required", ()) else _default(whole)
        yield Key(f"{above}{name}", (_type(whole), default, _DEFAULT.sub("", described)))
        for inner, mark in ((known, ""), (known.get("items", {}), "[]")):
            if "$ref" in inner:
                yield from _keys(models[inner["$ref"].rpartition("/")[2]], models, f"{above}{name}{mark}.")


def _without_null(field: Mapping[str, Any]) -> Mapping[str, Any]:
    choices: Sequence[Mapping[str, Any]] = [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]
    # A value may be text or a number, of either kind.
    return {"type": _TEXT_OR_NUMBER} if len(choices) > 1 else choices[0]


def _type(schema: Mapping[str, Any]) -> str:
    if schema.get("type") == "array":
        return f"list of {_plural(schema['items'])}"
    if "$ref" in schema:
        return "mapping"
    if schema.get("type") == "object":
        values = schema["additionalProperties"]
        known = isinstance(values, dict) and "type" in values
        return f"mapping to {_type(values)}" if known else "mapping"
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    return " ".join(filter(None, (_TYPES[schema["type"]], _range(schema))))


def _plural(schema: Mapping[str, Any]) -> str:
    name = _type(schema)
    return name if name == "text" else re.sub("(mapping|number)", r"\1s", name, count=1)


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default", {})
    if isinstance(default, dict):
        # The keys of a section have their own.
        return "" if "$ref" in schema else "{}"
    return default if isinstance(default, str) else json.dumps(default)


def _range(schema: Mapping[str, Any]) -> str:
    low, above, high = (schema.get(each) for each in ("minimum", "exclusiveMinimum", "maximum"))
    if above is not None and schema.get("type") == "integer":
        low, above = above + 1, None
    found = [f"from {low}" if low is not None else "", f"above {above}" if above is not None else ""]
    # The largest numbers of 32 and 64 bits say nothing.
    high = None if high is not None and high >= 2**31 - 1 else high
    return " ".join(filter(None, [*found, "" if high is None else f"to {high}"]))


def _with_modes(keys: Sequence[Key]) -> Iterator[tuple[str, ...]]:
    """The rows of a plan's keys. A key names its modes if the section that it is in has others."""
    modes = {key.name: key.modes for key in keys}
    for key in keys:
        *others, what = key.row
        if key.modes != modes.get(key.name.rpartition(".")[0].removesuffix("[]"), list(MODES)):
            what = f"{'Modes' if len(key.modes) > 1 else 'Mode'} {', '.join(key.modes)}: {what}"
        yield (key.name, *others, what)


def _key_list(rows: Iterable[Sequence[str]]) -> str:
    lines = []
    for name, kind, default, what in rows:
        given = f"default {default}" if default not in ("", "required") else default
        lines.append(f"- `{name}` ({', '.join(filter(None, (kind, given)))}): {what}".replace("<", r"\<"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (CHECKOUT / "docs" / "reference.md").write_text(reference(), encoding="utf-8")
    (CHECKOUT / ".env.example").write_text(env_example(), encoding="utf-8")
