"""A record and its row are the same entry, however a sink spells it; a changed one is not."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.checksum import parse
from sinkbench.errors import UserError
from sinkbench.verify.content import GONE, Asked, Entry, Extractor, members_of
from tests.support.anyrecords import VALUES, changed, text_of
from tests.support.present import present
from tests.support.respelled import respelled

RECORDS = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, min_size=1)
TABLE = {"id": "number", "payload": "document", "stored": "other"}
COLUMNS = {"id": "number", "name": "text", "price": "number", "tags": "document", "at": "other", "made_by": "text"}


def extractor(columns: dict[str, str] | None = None, **asked: Any) -> Extractor:
    known = {"by": "key", "key": "payload.id", **asked}
    return Extractor(Asked("orders", "postgres:orders", columns=TABLE if columns is None else columns, **known), set())


@given(RECORDS, st.data(), st.integers(0), st.sampled_from(["json", "text", "index"]))
@settings(deadline=None)
def test_a_record_is_its_row_in_any_spelling_and_no_other(
    record: dict[str, Any], data: st.DataObject, seed: int, kept: str
) -> None:
    other = data.draw(changed(record))
    columns = {"json": TABLE, "text": {**TABLE, "payload": "text"}, "index": {}}[kept]
    of = extractor(columns, key="_id" if kept == "index" else "id", topic_key="@key")
    text = text_of(record)
    sent = of.record(b"7", text.encode(), (0, 0))

    def row(value: Any) -> Entry | None:
        found = respelled(parse(text_of(value)), Random(seed))
        if kept == "index":
            return of.row({**parse(found), "@timestamp": 1, "_id": "7"})
        return of.row({"id": 7, "payload": found if kept == "text" else parse(found)})

    assert row(record) == present(sent)
    if parse(text_of(other)) != parse(text):
        assert row(other) != sent


def test_members_in_columns_are_compared_as_their_columns_keep_them() -> None:
    of = extractor(COLUMNS, key="id")
    record = {"id": "7", "name": 5, "price": "1.50", "tags": {"a": [1.0]}, "at": "2026-01-31", "left": 1}
    sent = of.record(None, json.dumps({"schema": {}, "payload": record}).encode(), (0, 0))
    row = {"id": 7, "name": "5", "price": 1.5, "tags": '{"a": [1]}', "made_by": "a trigger"}
    assert of.row(dict(row)) == sent
    assert of.row({**row, "price": 1.51}) != sent
    assert (of.needed, of.added) == ([name for name in COLUMNS if name != "at"], {"made_by"})


def test_a_column_payload_holds_whole_records_unless_they_have_such_a_member() -> None:
    asked = Asked("orders", "postgres:orders", "key", TABLE, "id")
    assert Extractor(asked, members_of([b'{"id": 7, "level": 1}'])).compared is None
    of = Extractor(asked, members_of([None, b'{"schema": {}, "payload": {"id": 7, "payload": [1]}}']))
    assert of.record(None, b'{"id": 7, "payload": [1]}', (0, 0)) == of.row({"id": 7, "payload": [1]})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"7", None),
        (b'{"id": 7}', None),
        (b'{"schema": {}, "payload": {"id": 7, "place": "x"}}', None),
        (b'{"id": 7}', b'{"before": {"id": 7}, "after": null, "op": "d", "source": {}}'),
        (b"7", b"null"),
    ],
)
def test_a_deleted_key_is_known_by_the_records_own_key(key: bytes, value: bytes | None) -> None:
    of = extractor()
    found, there = present(of.record(key, value, (0, 0))), present(of.row({"payload": {"id": 7}}))
    assert (found.key, found.content) == (there.key, GONE)


@pytest.mark.parametrize(
    "row",
    [
        {"__connect_topic": "orders", "__connect_partition": 3, "__connect_offset": 9},
        {"_id": "orders+3+9"},
        {"_id": "Struct{key=Struct{key=x},topic=orders,partition=3,offset=9}"},
    ],
    ids=["columns", "Confluent's id", "Camel's id"],
)
def test_a_position_is_found_where_connectors_keep_it(row: dict[str, Any]) -> None:
    columns = {} if "_id" in row else {**dict.fromkeys(row, "text"), **TABLE}
    of = extractor(columns, by="position", key=None)
    sent = of.record(None, b'{"a": 1}', (3, 9))
    assert of.row({**row, "a": 1} if "_id" in row else {**row, "payload": {"a": 1}}) == sent
    assert of.row({**row, **dict.fromkeys(row, "tides+3+9"), "payload": None}) is None


def test_what_is_neither_json_nor_text_is_counted_and_not_called_different() -> None:
    of = extractor(by="position", key=None, columns={})
    assert of.record(None, b"\0\xff", (0, 0)) == of.record(None, b'{"cut', (0, 0))
    assert of.counts == {"not compared": 2}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"key": "payloed.id"}, "postgres:orders: has no column 'payloed'; did you mean 'payload'?"),
        ({"by": "position", "key": None}, "postgres:orders: has no column '__connect_topic'"),
        ({"document": "doc"}, "postgres:orders: has no column 'doc'; known: id, payload, stored"),
        ({"by": "position", "key": None, "position": "id,stored"}, "--columns id,stored: give three"),
    ],
)
def test_a_column_that_is_not_there_is_told_with_the_nearest(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as refused:
        extractor(**asked)
    assert str(refused.value).startswith(said)
