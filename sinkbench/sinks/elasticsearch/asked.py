"""Compares what `index.json` asks for with the index that Elasticsearch made of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Settings that Elasticsearch makes itself for every index, and the defaults of its numbers.
ITS_OWN = re.compile(
    r"index\.(creation_date|uuid|provided_name|version\..*|routing\.allocation\.include\._tier_preference)"
)
USUAL = {"index.number_of_shards": "1", "index.number_of_replicas": "1"}
# Elasticsearch does not show mapping parameters that have their default.
ALL = {"_source.enabled": True, "_routing.required": False}
UNITS = {
    **{"nanos": ("time", 1e-9), "micros": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1.0)},
    **{"m": ("time", 60.0), "h": ("time", 3600.0), "d": ("time", 86400.0), "": ("", 1.0)},
    **{f"{letter}b": ("bytes", 1024.0**power) for power, letter in enumerate(("", "k", "m", "g", "t", "p"))},
}
QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?)([a-z]*)")

Tree = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Differences, one line each for a person: what is absent or different, and what an index template has added."""

    lacking: list[str]
    added: list[str]


def spread(body: dict[str, Any], options: Mapping[str, str]) -> dict[str, Any]:
    """A body of `PUT /INDEX` with the `shards` and `replicas` of `options`, if there are any, instead of its own."""
    wanted = {f"index.number_of_{name}": options[name] for name in ("shards", "replicas") if name in options}
    if not wanted:
        return body
    kept = {name: value for name, value in flat_settings(body.get("settings", {})).items() if name not in wanted}
    return {**body, "settings": {**kept, **wanted}}


def compare(asked: Tree, found: Tree) -> Comparison:
    """Compares a body of `PUT /INDEX` with the answer of `GET /INDEX`, with flat settings and defaults. An absent
    parameter of a field has its default: Elasticsearch refuses unknown ones.
    """
    mappings, became = (each.get("mappings", {}) for each in (asked, found))
    settings = {name: value for name, value in found.get("settings", {}).items() if not _is_usual(name, value)}
    kept = {**found.get("defaults", {}), **found.get("settings", {})}
    wanted, of_all = flat_settings(asked.get("settings", {})), _of_all(mappings)
    parts = [
        _differences("", wanted, settings, {**dict.fromkeys(wanted), **kept}),
        _differences("", of_all, _of_all(became), {**dict.fromkeys(of_all), **ALL}),
        *_of_fields(dict(_fields(mappings)), dict(_fields(became))),
    ]
    aliases = [f"the alias {name}" for name in found.get("aliases", {}) if name not in asked.get("aliases", {})]
    return Comparison(
        [line for each in parts for line in each.lacking], [*(line for each in parts for line in each.added), *aliases]
    )


def is_same(asked: Any, found: Any) -> bool:
    """Whether two values are equal, however they are written: true and "true", 1s and 1000ms, a and [a]."""
    if isinstance(asked, list) or isinstance(found, list):
        these, those = (each if isinstance(each, list) else [each] for each in (asked, found))
        return len(these) == len(those) and all(map(is_same, these, those))
    if isinstance(asked, Mapping) and isinstance(found, Mapping):
        return asked.keys() == found.keys() and all(is_same(value, found[name]) for name, value in asked.items())
    return _text(asked) == _text(found) or (None is not _quantity(asked) == _quantity(found))


def seconds_of(value: Any) -> float | None:
    """Seconds of a time such as 30s or 500ms, below 0 for never; None for anything else."""
    found = _quantity(value)
    return found[1] if found is not None and found[0] != "bytes" else None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quantity(value: Any) -> tuple[str, float] | None:
    found = QUANTITY.fullmatch(_text(value).lower())
    if found is None or found[2] not in UNITS:
        return None
    kind, factor = UNITS[found[2]]
    return kind, round(float(found[1]) * factor, 12)


def _is_usual(name: str, value: Any) -> bool:
    return bool(ITS_OWN.fullmatch(name)) or value == USUAL.get(name)


def _differences(of: str, wanted: Tree, there: Tree, defaults: Tree | None = None) -> Comparison:
    known = {**(defaults or {}), **there}
    return Comparison(
        [
            f"{of}{name} {_shown(value)} was asked for, and is {_shown(known[name])}"
            for name, value in wanted.items()
            if name in known and not is_same(value, known[name])
        ],
        [f"{of}{name} {_shown(value)}" for name, value in there.items() if name not in wanted],
    )


def _shown(value: Any) -> str:
    return "absent" if value is None else f'"{value}"' if value == "" else _text(value)


def flat_settings(asked: Tree) -> dict[str, Any]:
    """Settings by Elasticsearch's flat names, all below `index`; null asks for nothing."""
    flat = {name: value for name, value in _leaves(asked) if value is not None}
    return {name if name.startswith("index.") else f"index.{name}": value for name, value in flat.items()}


def _leaves(tree: Tree, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _fields(mapping: Tree, prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for part in ("properties", "fields"):
        for name, field in mapping.get(part, {}).items():
            own = {key: value for key, value in field.items() if key not in ("properties", "fields")}
            # A field with properties is an object, even without a type.
            yield f"{prefix}{name}", {"type": "object", **own}
            yield from _fields(field, f"{prefix}{name}.")


def _of_all(mappings: Tree) -> dict[str, Any]:
    """What mappings say about the whole index, without sinkbench's mark."""
    return dict(_leaves({name: each for name, each in mappings.items() if name not in ("properties", "_meta")}))


def _of_fields(wanted: Tree, there: Tree) -> Iterator[Comparison]:
    for name, field in wanted.items():
        if name in there:
            yield _differences(f"{name}'s ", field, there[name])
        else:
            yield Comparison([f"the field {name} was asked for, and is absent"], [])
    # A name with dots creates objects.
    parents = {name[: dot.start()] for name in wanted for dot in re.finditer(r"\.", name)}
    yield Comparison([], [f"the field {name}" for name in there if name not in wanted and name not in parents])
