"""The forms of a record on a topic: what a converter has to read.

    document           {"metadata": {...}, "data": [{...}], "bench": {...}}
    row                {"metadata_id": "...", ..., "data_t": "...", ..., "bench_run": "...", "bench_seq": 7, ...}
    ...-debezium       {"before": null, "after": RECORD, "source": {...}, "transaction": null, "op": "c", "ts_ms": ...}
    ...-schema         {"schema": {...}, "payload": RECORD}

A row has a document's values as columns, as from a relational source. The envelope is that of an insertion by
Debezium's PostgreSQL source. The schema is Kafka Connect's, as JsonConverter with `schemas.enable` writes it."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Literal

from loadgen.checksum import DIGITS, SUM

_Document = Literal["document", "document-schema", "document-debezium", "document-debezium-schema"]
Form = Literal[_Document, "row", "row-schema", "row-debezium", "row-debezium-schema"]
DOCUMENT: Form = "document"

# Members of a record, by their parent.
_MEMBERS = {
    "metadata": ("id", "name", "lat", "lon", "location"),
    "data": ("t", "v", "s", "f", "q"),
    "bench": ("run", "seq", "due_us", "sent_us", "pad", SUM),
}
# The table from which the record seems to come, in an envelope.
_ROW = "noaa.public.tides"
# All times have as many digits until the year 2286.
_SOME_TIME_US = 10**15

Json = dict[str, Any]


def is_row(form: str) -> bool:
    return form.startswith("row")


def has_envelope(form: str) -> bool:
    return "-debezium" in form


def has_schema(form: str) -> bool:
    return form.endswith("-schema")


class Wording:
    """The constant parts of a record's text in one form, each between the value before and that of its own name.

    `q` ends with the quality itself, which is always the same; `sum` is empty in a form that has no checksum."""

    def __init__(self, form: Form) -> None:
        self.form, row = form, is_row(form)
        schema = json.dumps(schema_of(form), separators=(",", ":")) if has_schema(form) else ""
        self.opening = f'{{"schema":{schema},"payload":' if schema else ""
        if has_envelope(form):
            self.opening += '{"before": null, "after": '
        data, bench = ("data_", "bench_") if row else ("", "")
        self.v, self.s, self.f = (f'", "{data}{name}": "' for name in "vsf")
        self.q = f'", "{data}q": "p'
        self.run = '", "bench_run": ' if row else '"}], "bench": {"run": '
        self.seq, self.due_us, self.sent_us = (f', "{bench}{name}": ' for name in ("seq", "due_us", "sent_us"))
        self.pad, self.end_of_pad = f', "{bench}pad": "', '"'
        self.sum = "" if row else f', "{SUM}": "'
        self.end = "}" if row else '"}}'

    def head(self, metadata: Mapping[str, str]) -> str:
        """A record's beginning, up to its time, with the station's members."""
        if is_row(self.form):
            station = json.dumps({f"metadata_{name}": value for name, value in metadata.items()})[:-1]
            return f'{station}, "data_t": "'
        return f'{{"metadata": {json.dumps(metadata)}, "data": [{{"t": "'

    def closing(self, sent_us: int) -> str:
        closing = ""
        if has_envelope(self.form):
            source = _source(sent_us)
            times = {name: source[name] for name in ("ts_ms", "ts_us", "ts_ns")}
            closing = ", " + json.dumps({"source": source, "transaction": None, "op": "c", **times})[1:]
        return closing + "}" if has_schema(self.form) else closing


def added_bytes(form: Form) -> int:
    """By how many bytes a padded record is longer in that form than as a document."""

    def constant_bytes(wording: Wording) -> int:
        parts = [part for name, part in vars(wording).items() if name != "form"]
        station = dict.fromkeys(_MEMBERS["metadata"], "")
        digits = DIGITS if wording.sum else 0
        return digits + sum(map(len, (*parts, wording.head(station), wording.closing(_SOME_TIME_US))))

    return constant_bytes(Wording(form)) - constant_bytes(Wording(DOCUMENT))


def record_in(value: Any, form: Form) -> Any:
    """Returns the record in a parsed value of that form. Raises KeyError or TypeError if there is none."""
    record = value["payload"] if has_schema(form) else value
    return record["after"] if has_envelope(form) else record


def schema_of(form: Form) -> Json:
    """Returns Kafka Connect's schema of a form's values, as JsonConverter writes it."""
    if is_row(form):
        # A table's columns may return other types, so a row has no checksum.
        every = [(part, name) for part, names in _MEMBERS.items() for name in names if name != SUM]
        members = [_text(f"{part}_{name}", name) for part, name in every]
    else:
        parts = {part: _struct([_text(name, name) for name in names]) for part, names in _MEMBERS.items()}
        parts["data"] = {"type": "array", "items": {**parts["data"], "optional": False}}
        members = [{**part, "optional": False, "field": name} for name, part in parts.items()]
    record = _struct(members, f"{_ROW}.Value")
    if not has_envelope(form):
        return {**record, "optional": False}
    # Of Debezium's envelope all but the record before and after the change.
    envelope: Json = json.loads(files("loadgen").joinpath("envelope.json").read_text(encoding="utf-8"))
    sides = [{**record, "optional": True, "field": side} for side in ("before", "after")]
    return {**envelope, "fields": [*sides, *envelope["fields"]]}


def _text(field: str, member: str) -> Json:
    kind = "int64" if member in ("seq", "due_us", "sent_us") else "string"
    return {"type": kind, "optional": member == "pad", "field": field}


def _struct(members: list[Json], name: str | None = None) -> Json:
    return {"type": "struct", "fields": members, **({} if name is None else {"name": name})}


def _source(sent_us: int) -> Json:
    """The `source` of a change, in the order of its schema; the records of one call are one transaction."""
    return {
        "version": "3.6.0.Final", "connector": "postgresql", "name": "noaa", "ts_ms": sent_us // 1_000,
        "snapshot": "false", "db": "noaa", "sequence": f'["{sent_us}","{sent_us}"]', "ts_us": sent_us,
        "ts_ns": sent_us * 1_000, "schema": "public", "table": "tides", "txId": sent_us, "lsn": sent_us, "xmin": None,
    }  # fmt: skip
