"""The index of a trial: its file, its settings, what became of both, and a proposed file. Pure but for the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loadgen.reading import parse_json, read_text
from sinkbench.analysis.durability import index_promise
from sinkbench.analysis.fields import Field, Kind, Survey
from sinkbench.analysis.settable import Given, Settable, duration, one_of, whole
from sinkbench.errors import TargetError
from sinkbench.sinks.values import Proposal, SinkSettings

# Settings that Elasticsearch makes itself for every index, and the defaults of its numbers.
ITS_OWN = re.compile(
    r"index\.(creation_date|uuid|provided_name|version\..*|routing\.allocation\.include\._tier_preference)"
)
USUAL = {"index.number_of_shards": "1", "index.number_of_replicas": "1"}
UNITS = {
    **{"nanos": ("time", 1e-9), "micros": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1.0)},
    **{"m": ("time", 60.0), "h": ("time", 3600.0), "d": ("time", 86400.0), "": ("", 1.0)},
    **{f"{letter}b": ("bytes", 1024.0**power) for power, letter in enumerate(("", "k", "m", "g", "t", "p"))},
}
QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?)([a-z]*)")

TRANSLOG = "index.translog.durability"
SYNC_INTERVAL = "index.translog.sync_interval"
SETTABLE = Settable(
    {
        "index.number_of_shards": whole(1, 1024),
        "index.number_of_replicas": whole(0, 100),
        TRANSLOG: one_of("request", "async"),
        SYNC_INTERVAL: duration(),
        "index.refresh_interval": duration("-1"),
    },
    # The settings are part of the trial's own index.
    shared=True,
)
"""What can be set when an index is created."""
# What an index promises for acknowledged documents, and what else its speed depends on.
DURABILITY = (TRANSLOG, SYNC_INTERVAL, "index.number_of_replicas")
TUNING = ("index.number_of_shards", "index.refresh_interval")

# An index permits 1,000 fields, but a proposal must be readable.
MOST_FIELDS = 300
# Without shapes: not every distribution of Elasticsearch has the type geo_shape.
TYPES: dict[Kind, dict[str, Any]] = {
    Kind.WHOLE: {"type": "long"},
    Kind.DECIMAL: {"type": "double"},
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.WORD: {"type": "keyword", "ignore_above": 8191},
    Kind.TEXT: {"type": "text"},
    Kind.POINT_TEXT: {"type": "geo_point"},
    Kind.POINT: {"type": "geo_point"},
}

Tree = Mapping[str, Any]


def spread(body: dict[str, Any], options: Mapping[str, str]) -> dict[str, Any]:
    """A body of `PUT /INDEX` with the `shards` and `replicas` of `options`, if there are any, instead of its own."""
    wanted = {f"index.number_of_{name}": options[name] for name in ("shards", "replicas") if name in options}
    return {**body, "settings": {**flat_settings(body.get("settings", {})), **wanted}} if wanted else body


def compare(asked: Tree, found: Tree) -> tuple[list[str], list[str]]:
    """Compares a body of `PUT /INDEX` with the answer of `GET /INDEX`, with flat settings and defaults. Returns, each
    in one line for a person, settings that are absent or different, and what an index template has added.
    """
    wanted, there = flat_settings(asked.get("settings", {})), found.get("settings", {})
    kept = {**found.get("defaults", {}), **there}
    lacking = [
        f"{name} {value} was asked for, and is {kept.get(name, 'absent')}"
        for name, value in wanted.items()
        if not is_same(value, kept.get(name))
    ]
    fields, became = (set(_fields(each.get("mappings", {}))) for each in (asked, found))
    # A name with dots creates objects.
    parents = {name[: dot.start()] for name in fields for dot in re.finditer(r"\.", name)}
    added = [
        *(f"{name} {value}" for name, value in there.items() if name not in wanted and not _is_usual(name, value)),
        *(f"the field {name}" for name in sorted(became - fields - parents)),
        *(f"the alias {name}" for name in found.get("aliases", {}) if name not in asked.get("aliases", {})),
    ]
    return lacking, added


def _is_usual(name: str, value: Any) -> bool:
    return bool(ITS_OWN.fullmatch(name)) or value == USUAL.get(name)


def _fields(mapping: Tree, prefix: str = "") -> Iterator[str]:
    for name, field in {**mapping.get("properties", {}), **mapping.get("fields", {})}.items():
        yield f"{prefix}{name}"
        yield from _fields(field, f"{prefix}{name}.")


def is_same(asked: Any, found: Any) -> bool:
    """Whether two values are equal, however they are written: true and "true", 1s and 1000ms, a and [a]."""
    if isinstance(asked, list) or isinstance(found, list):
        these, those = (each if isinstance(each, list) else [each] for each in (asked, found))
        return len(these) == len(those) and all(map(is_same, these, those))
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


class IndexSettings:
    """What a plan sets for the next index, and is removed with it."""

    def __init__(self) -> None:
        self.given: Mapping[str, str] = {}

    def refusal(self, given: Given) -> str | None:
        return None

    def apply(self, given: Given) -> None:
        self.given = given.get("elasticsearch", {})

    def revert(self) -> list[str]:
        self.given = {}
        return []


def settings_of(index: Mapping[str, Mapping[str, Any]]) -> SinkSettings:
    """An index's settings in Elasticsearch's answer: its own, flat, and the defaults of others."""
    known = {**index.get("defaults", {}), **index.get("settings", {})}
    # A default comes as REQUEST, a user's setting as request.
    found = {name: None if known.get(name) is None else str(known[name]).lower() for name in (*DURABILITY, *TUNING)}
    durability, tuning = ({name: found[name] for name in names} for names in (DURABILITY, TUNING))
    return SinkSettings(durability, tuning, index_promise(durability, seconds_of(found[SYNC_INTERVAL])))


def propose_index(found: Survey, checkout: Path, source: str) -> Proposal:
    """Proposes elasticsearch/index.json with fields for such records. Raises TargetError if that file is unusable."""
    usual = checkout / "elasticsearch" / "index.json"
    try:
        body = parse_json(read_text(usual, TargetError))
        bench = body["mappings"]["properties"]["bench"]
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise TargetError(f"{usual}: cannot be used as an index: {error!r}") from None
    usable = [each for each in found.fields if each.kind in (*TYPES, Kind.DATE) and all(each.path)]
    properties: dict[str, Any] = {}
    for each in usable[:MOST_FIELDS]:
        _put(properties, each)
    # The audit needs it.
    properties["bench"] = bench
    left_out = [each.name for each in found.fields if each not in usable] + [each.name for each in usable[MOST_FIELDS:]]
    body["mappings"] = {**body["mappings"], "properties": properties, "_meta": {"proposed_for": source}}
    notes = (f"not indexed by Elasticsearch, but kept: {', '.join(left_out)}",) if left_out else ()
    return Proposal(".index.json", f"{json.dumps(body, indent=2, ensure_ascii=False)}\n", notes)


def _put(properties: dict[str, Any], each: Field) -> None:
    for name in each.path[:-1]:
        properties = properties.setdefault(name, {"properties": {}})["properties"]
    date = {"type": "date", "format": each.date_format}
    properties[each.path[-1]] = date if each.kind is Kind.DATE else dict(TYPES[each.kind])
