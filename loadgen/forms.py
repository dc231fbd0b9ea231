"""The forms of a record on a topic: what a converter has to read.

    document           {"metadata": {...}, "data": [{...}], "bench": {...}}
    row                {"metadata_id": "...", ..., "data_t": "...", ..., "bench_run": "...", "bench_seq": 7, ...}
    ...-debezium       {"before": null, "after": RECORD, "source": {...}, "transaction": null, "op": "c", "ts_ms": ...}
    ...-schema         {"schema": {...}, "payload": RECORD}

A row has a document's values as columns, as from a relational source. The envelope is that of an insertion by
Debezium's PostgreSQL source. The schema is Kafka Connect's, as JsonConverter with `schemas.enable` writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from loadgen.checksum import DIGITS, SUM

Form = Literal[
    "document",
    "document-schema",
    "document-debezium",
    "document-debezium-schema",
    "row",
    "row-schema",
    "row-debezium",
    "row-debezium-schema",
]
DOCUMENT: Form = "document"
FORMS: tuple[Form, ...] = get_args(Form)

# Members of a record, by their parent; the whole numbers of `bench`, and optional members.
_MEMBERS = {
    "metadata": ("id", "name", "lat", "lon", "location"),
    "data": ("t", "v", "s", "f", "q"),
    "bench": ("run", "seq", "due_us", "sent_us", "pad", SUM),
}
_WHOLE, _OPTIONAL = ("seq", "due_us", "sent_us"), ("pad",)
# A table's columns may return other types, so a row has no checksum.
_NO_COLUMNS = (("bench", SUM),)
# The table from which the record seems to come, in an envelope.
_SOURCE = {"version": "3.6.0.Final", "connector": "postgresql", "name": "noaa", "db": "noaa", "schema": "public"}
_TABLE = "tides"
_ROW = f"noaa.public.{_TABLE}"
_TIMES = ("ts_ms", "ts_us", "ts_ns")
# All times have as many digits until the year 2286.
_SOME_TIME_US = 10**15

Json = dict[str, Any]


def is_row(form: str) -> bool:
    return form.startswith("row")


def has_envelope(form: str) -> bool:
    return "-debezium" in form


def has_schema(form: str) -> bool:
    return form.endswith("-schema")


@dataclass(frozen=True)
class Wording:
    """The constant parts of a record's text in one form, each between the value before and that of its own name.

    `q` ends with the quality itself, which is always the same; `sum` is empty in a form that has no checksum.
    """

    form: Form
    opening: str
    v: str
    s: str
    f: str
    q: str
    run: str
    seq: str
    due_us: str
    sent_us: str
    pad: str
    end_of_pad: str
    sum: str
    end: str

    def head(self, metadata: Mapping[str, str]) -> str:
        """A record's beginning, up to its time, with the station's members."""
        if is_row(self.form):
            station = json.dumps({f"metadata_{name}": value for name, value in metadata.items()})[:-1]
            return f'{station}, "data_t": "'
        return f'{{"metadata": {json.dumps(metadata)}, "data": [{{"t": "'

    def closing(self, sent_us: int) -> str:
        closing = ""
        if has_envelope(self.form):
            source, times = _source(sent_us), dict(zip(_TIMES, _times(sent_us), strict=True))
            rest = {"source": source, "transaction": None, "op": "c", **times}
            closing = ", " + json.dumps(rest)[1:]
        return closing + "}" if has_schema(self.form) else closing


def wording_of(form: Form) -> Wording:
    opening = f'{{"schema":{json.dumps(schema_of(form), separators=(",", ":"))},"payload":' if has_schema(form) else ""
    if has_envelope(form):
        opening += '{"before": null, "after": '
    data, bench = ("data_", "bench_") if is_row(form) else ("", "")
    run = '", "bench_run": ' if is_row(form) else '"}], "bench": {"run": '
    return Wording(
        form=form,
        opening=opening,
        v=f'", "{data}v": "',
        s=f'", "{data}s": "',
        f=f'", "{data}f": "',
        q=f'", "{data}q": "p',
        run=run,
        seq=f', "{bench}seq": ',
        due_us=f', "{bench}due_us": ',
        sent_us=f', "{bench}sent_us": ',
        pad=f', "{bench}pad": "',
        end_of_pad='"',
        sum="" if is_row(form) else f', "{SUM}": "',
        end="}" if is_row(form) else '"}}',
    )


def added_bytes(form: Form) -> int:
    """By how many bytes a padded record is longer in that form than as a document."""

    def constant_bytes(wording: Wording) -> int:
        parts = [getattr(wording, part.name) for part in fields(wording) if part.name != "form"]
        station = dict.fromkeys(_MEMBERS["metadata"], "")
        digits = DIGITS if wording.sum else 0
        return digits + sum(map(len, (*parts, wording.head(station), wording.closing(_SOME_TIME_US))))

    return constant_bytes(wording_of(form)) - constant_bytes(wording_of(DOCUMENT))


def record_in(value: Any, form: Form) -> Any:
    """Returns the record in a parsed value of that form. Raises KeyError or TypeError if there is none."""
    record = value["payload"] if has_schema(form) else value
    return record["after"] if has_envelope(form) else record


def schema_of(form: Form) -> Json:
    """Returns Kafka Connect's schema of a form's values, as JsonConverter writes it."""
    record = _struct([_text(*names) for names in _columns()] if is_row(form) else _members(), name=f"{_ROW}.Value")
    if not has_envelope(form):
        return {**record, "optional": False}
    return {
        **_struct(
            [
                {**record, "optional": True, "field": "before"},
                {**record, "optional": True, "field": "after"},
                {**_source_schema(), "optional": False, "field": "source"},
                {**_transaction_schema(), "optional": True, "field": "transaction"},
                _field("string", "op", optional=False),
                *(_field("int64", name, optional=True) for name in _TIMES),
            ],
            name=f"{_ROW}.Envelope",
        ),
        "optional": False,
        "version": 2,
    }


def _columns() -> list[tuple[str, str]]:
    """The columns of a row, in order, with the member of each."""
    every = [(part, name) for part, names in _MEMBERS.items() for name in names]
    return [(f"{part}_{name}", name) for part, name in every if (part, name) not in _NO_COLUMNS]


def _members() -> list[Json]:
    parts = {part: _struct([_text(name, name) for name in names]) for part, names in _MEMBERS.items()}
    data = {"type": "array", "items": {**parts["data"], "optional": False}}
    return [
        {**(data if part == "data" else struct), "optional": False, "field": part} for part, struct in parts.items()
    ]


def _text(field: str, member: str) -> Json:
    return _field("int64" if member in _WHOLE else "string", field, optional=member in _OPTIONAL)


def _field(kind: str, name: str, *, optional: bool) -> Json:
    return {"type": kind, "optional": optional, "field": name}


def _struct(members: list[Json], name: str | None = None) -> Json:
    return {"type": "struct", "fields": members, **({} if name is None else {"name": name})}


def _source(sent_us: int) -> Json:
    """The `source` of a change in Debezium's PostgreSQL envelope; the records of one call are one transaction."""
    ts_ms, ts_us, ts_ns = _times(sent_us)
    return {
        **{name: _SOURCE[name] for name in ("version", "connector", "name")},
        "ts_ms": ts_ms,
        "snapshot": "false",
        "db": _SOURCE["db"],
        "sequence": f'["{sent_us}","{sent_us}"]',
        "ts_us": ts_us,
        "ts_ns": ts_ns,
        "schema": _SOURCE["schema"],
        "table": _TABLE,
        "txId": sent_us,
        "lsn": sent_us,
        "xmin": None,
    }


def _source_schema() -> Json:
    optional = ("sequence", "snapshot", "ts_us", "ts_ns", "txId", "lsn", "xmin")
    texts = (*_SOURCE, "snapshot", "sequence", "table")
    members = [_field("string" if name in texts else "int64", name, optional=name in optional) for name in _source(0)]
    return _struct(members, name="io.debezium.connector.postgresql.Source")


def _transaction_schema() -> Json:
    numbers = [_field("int64", name, optional=False) for name in ("total_order", "data_collection_order")]
    return {**_struct([_field("string", "id", optional=False), *numbers], name="event.block"), "version": 1}


def _times(sent_us: int) -> tuple[int, int, int]:
    return sent_us // 1_000, sent_us, sent_us * 1_000
