"""Whether a sink holds what was sent."""

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from sinkbench.analysis.content import Content, compare_content, documents_of

DOCUMENT = {"metadata": {"id": "8454000", "name": "Providence"}, "data": {"v": "1.5", "q": "p"}, "bench": {"seq": 1}}


def test_the_same_document_is_not_altered_whatever_the_order_of_its_members() -> None:
    metadata = {"name": "Providence", "id": "8454000"}
    stored = {"bench": {"seq": 1}, "data": {"q": "p", "v": "1.5"}, "metadata": metadata}
    assert compare_content({1: DOCUMENT}, {1: stored}) == Content(1, 0, "")


@pytest.mark.parametrize(
    ("stored", "altered", "how"),
    [
        (
            {"metadata": {"id": "8454000"}, "data": {"v": 1.5, "q": "p"}, "bench": {"seq": 1}},
            1,
            "metadata.name gone, data.v changed",
        ),
        ("text", 1, "the whole document changed"),
        # What the sink has added alters nothing.
        ({**DOCUMENT, "ingested": "today"}, 0, ""),
    ],
)
def test_members_that_are_gone_or_changed_are_named(stored: Any, altered: int, how: str) -> None:
    found = compare_content({1: DOCUMENT}, {1: stored})
    assert (found.altered, found.how) == (altered, how)


def test_only_records_that_both_know_are_compared() -> None:
    assert compare_content({1: DOCUMENT, 2: DOCUMENT}, {2: DOCUMENT, 3: {}}) == Content(1, 0, "")
    assert compare_content({1: DOCUMENT}, {}) == Content()


def test_what_others_write_to_a_topic_ends_no_comparison() -> None:
    mine = b'{"bench": {"run": "r", "seq": 1}}'
    strange = [b"[" * 100_000, b'{"bench": {"run": "r", "seq": 1e999}}', b"\xff", b"{}", b"[]", b'{"bench": 1}', b"no"]
    others = [b'{"bench": {"run": "s", "seq": 8}}', b'{"bench": {"run": "r"}}']
    assert documents_of([*strange, *others, mine], "r") == {1: {"bench": {"run": "r", "seq": 1}}}


def test_many_members_are_named_by_the_first() -> None:
    sent = {seq: dict.fromkeys("abcde", 1) for seq in range(2)}
    assert compare_content(sent, {0: {}, 1: {"e": 2}}) == Content(2, 2, "a, b, c and 2 more gone, e changed")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=2), each, max_size=3),
    max_leaves=8,
)


def test_a_record_is_found_in_what_its_form_has_around_it() -> None:
    row = {"data_v": "1.5", "bench_run": "r", "bench_seq": 7}
    event = {"before": None, "after": row, "op": "c"}
    values = [
        json.dumps(each).encode() for each in ({"schema": {}, "payload": event}, {"payload": {"after": None}}, row)
    ]
    assert documents_of(values, "r", "row-debezium-schema") == {7: row}
    assert (documents_of(values, "r", "row"), documents_of(values, "r")) == ({7: row}, {})
