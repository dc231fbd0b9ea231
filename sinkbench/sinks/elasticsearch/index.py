"""The index of a trial: its file, its settings, what became of both, and a proposed file. Pure but for the file."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loadgen.reading import parse_json, read_text
from sinkbench.analysis.fields import Kind, Survey
from sinkbench.analysis.replication import index_promise
from sinkbench.analysis.settable import Settable, duration, one_of, whole
from sinkbench.errors import TargetError
from sinkbench.sinks.values import Proposal, SinkSettings

# Settings that Elasticsearch makes itself for every index, and the defaults of its numbers.
ITS_OWN = re.compile(
    r"index\.(creation_date|uuid|provided_name|version\..*|routing\.allocation\.include\._tier_preference)"
)
USUAL = {"index.number_of_shards": "1", "index.number_of_replicas": "1"}
UNITS = {"nanos": 1e-9, "micros": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}
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
# What an index promises for acknowledged documents, and what else its speed depends on.
DURABILITY = (TRANSLOG, SYNC_INTERVAL, "index.number_of_replicas")
TUNING = ("index.number_of_shards", "index.refresh_interval")
# An index permits 1,000 fields and objects, on 20 levels, but a proposal must be readable.
MOST_FIELDS, MOST_LEVELS, LONGEST_NAME = 300, 20, 512
# Elasticsearch's own names.
METADATA = re.compile(
    "_(id|index|source|routing|version|seq_no|field_names|ignored(_source)?|nested_path|tier|doc_count)"
)
# Without shapes: not every distribution of Elasticsearch has the type geo_shape.
TYPES: dict[Kind, str] = {
    **{Kind.WHOLE: "long", Kind.DECIMAL: "double", Kind.BOOLEAN: "boolean", Kind.WORD: "keyword", Kind.TEXT: "text"},
    **{Kind.POINT_TEXT: "geo_point", Kind.POINT: "geo_point", Kind.DATE: "date"},
}
DETAILS: dict[Kind, dict[str, Any]] = {Kind.WORD: {"ignore_above": 8191}}


def spread(body: dict[str, Any], options: Mapping[str, str], given: Mapping[str, str]) -> dict[str, Any]:
    """A body of `PUT /INDEX` with the `shards` and `replicas` of `options`, and settings `given`, before its own."""
    wanted = {f"index.number_of_{name}": options[name] for name in ("shards", "replicas") if name in options}
    return {**body, "settings": {**flat_settings(body.get("settings", {})), **wanted, **given}}


def compare(asked: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Compares a body of `PUT /INDEX` with the answer of `GET /INDEX`, with flat settings and defaults. Returns, each
    in one line for a person, settings that are absent or different, and what an index template has added."""
    wanted, there = flat_settings(asked.get("settings", {})), found.get("settings", {})
    kept = {**found.get("defaults", {}), **there}
    changed = {name: value for name, value in wanted.items() if _plain(value) != _plain(kept.get(name))}
    lacking = [f"{name} {value} was asked for, and is {kept.get(name, 'absent')}" for name, value in changed.items()]
    fields, became = (set(_fields(each.get("mappings", {}))) for each in (asked, found))
    # A name with dots creates objects.
    parents = {name[: dot.start()] for name in fields for dot in re.finditer(r"\.", name)}
    its_own = {name for name, value in there.items() if ITS_OWN.fullmatch(name) or value == USUAL.get(name)}
    added = [
        *(f"{name} {value}" for name, value in there.items() if name not in {*wanted, *its_own}),
        *(f"the field {name}" for name in sorted(became - fields - parents)),
        *(f"the alias {name}" for name in found.get("aliases", {}) if name not in asked.get("aliases", {})),
    ]
    return lacking, added


def _fields(mapping: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, field in {**mapping.get("properties", {}), **mapping.get("fields", {})}.items():
        yield f"{prefix}{name}"
        yield from _fields(field, f"{prefix}{name}.")


def _plain(value: Any) -> Any:
    """A setting as it is compared: it may be written as true or "true", and as a or [a]."""
    return [str(each).lower() for each in (value if isinstance(value, list) else [value])]


def seconds_of(value: Any) -> float | None:
    """Seconds of a time such as 30s or 500ms, below 0 for never; None for anything else."""
    found = QUANTITY.fullmatch(str(value).lower())
    return None if found is None or found[2] not in UNITS else float(found[1]) * UNITS[found[2]]


def flat_settings(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by Elasticsearch's flat names, all below `index`; null asks for nothing."""
    flat = {name: value for name, value in _leaves(asked) if value is not None}
    return {name if name.startswith("index.") else f"index.{name}": value for name, value in flat.items()}


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


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
    refused = refusals(found)
    properties: dict[str, Any] = {}
    for each in found.fields:
        if each.path in refused:
            continue
        *above, name = ".".join(each.path).split(".")
        within = properties
        for step in above:
            within = within.setdefault(step, {"properties": {}})["properties"]
        details = {"format": each.date_format} if each.kind is Kind.DATE else DETAILS.get(each.kind, {})
        within[name] = {"type": TYPES[each.kind], **details}
    # The audit needs it.
    properties["bench"] = bench
    left_out = {each.name: refused[each.path] for each in found.fields if each.path in refused}
    about = {"proposed_for": source, "not_indexed": left_out}
    body["mappings"] = {**body["mappings"], "properties": properties, "_meta": about}
    return Proposal(".index.json", f"{json.dumps(body, indent=2, ensure_ascii=False)}\n", left_out)


def refusals(survey: Survey) -> dict[tuple[str, ...], str]:
    """Why an index has no field for a member, by its path. Elasticsearch reads a name with dots as a path."""
    named = {path: tuple(".".join(path).split(".")) for path in survey.paths}
    count = Counter(named.values())
    clashing = {names[:length] for names in named.values() for length in range(1, len(names))} & count.keys()
    mapped, found = set[tuple[str, ...]](), dict[tuple[str, ...], str]()
    for each in survey.fields:
        names = named[each.path]
        whole = {names[:length] for length in range(1, len(names) + 1)}
        if not all(name.strip() for name in names):
            found[each.path] = "Elasticsearch has no fields of blank names, and refuses most records with such a name"
        elif METADATA.fullmatch(names[0]):
            found[each.path] = "Elasticsearch uses the name itself, and refuses every record that has it"
        elif len(names) > MOST_LEVELS or len("".join(names)) > LONGEST_NAME:
            found[each.path] = f"it has more than {MOST_LEVELS} levels, or names of more than {LONGEST_NAME} characters"
        elif each.kind not in TYPES:
            found[each.path] = str(each.kind)
        elif whole & clashing or count[names] > 1:
            found[each.path] = (
                "Elasticsearch reads dots as a path, on which one name is a value and an object, or two are one"
            )
        elif len(mapped | whole) > MOST_FIELDS:
            found[each.path] = f"only the {MOST_FIELDS} most frequent members have one"
        else:
            mapped |= whole
    return found


def unsafe_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Why an index with these flat settings loses acknowledged records in a crash."""
    if str(settings.get(TRANSLOG, "request")).lower() != "async":
        return ()
    return (f"{TRANSLOG} is async, so that the disk is behind by up to {settings.get(SYNC_INTERVAL, '5s')}",)


def target_of(file: Path) -> tuple[str, ...]:
    """The same of the index that a file creates, the body of `PUT /INDEX`. Raises TargetError if it cannot be used."""
    try:
        asked = parse_json(read_text(file, TargetError, if_missing="restore it"))
        return unsafe_of(flat_settings(asked.get("settings", {})))
    except (ValueError, AttributeError, TypeError) as error:
        raise TargetError(f"{file}: cannot be used as an index: {error}") from None
