"""One changed record among all that are stored is found by the checksum that it bears."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.checksum import parse
from loadgen.options import load_from
from loadgen.records import records_of
from sinkbench.analysis.content import ChecksumAudit, Content, bear_checksums, compare_content, documents_of, one_in

COUNT = 2_000
MADE = records_of(
    load_from({"bootstrap": "b", "topic": "t", "run": "r", "count": COUNT, "keys": 50, "record_bytes": 512})
)


def stored() -> list[Any]:
    return [parse(value) for value in MADE]


def checked(documents: list[Any], few: Content | None = None) -> Content:
    audit = ChecksumAudit(COUNT, few or Content())
    audit.add(documents[:700])
    audit.add(documents[700:])
    return audit.result()


@given(st.integers(0, COUNT - 1), st.sampled_from(["pad", "sent_us", "v", "name", "more", "less", "sum"]))
def test_one_changed_record_is_found(seq: int, what: str) -> None:
    documents = stored()
    documents[seq] = changed = copy.deepcopy(documents[seq])
    if what == "pad":
        changed["bench"]["pad"] = changed["bench"]["pad"][:-1] + "\u00e9"
    elif what == "sent_us":
        changed["bench"]["sent_us"] += 1
    elif what == "v":
        changed["data"][0]["v"] = float(changed["data"][0]["v"])
    elif what == "name":
        changed["metadata"]["name"] += " "
    elif what == "more":
        changed["ingested"] = "today"
    elif what == "less":
        del changed["data"][0]["q"]
    else:
        del changed["bench"]["sum"]
    found = checked(documents)
    assert (found.compared, found.altered, found.altered_ranges) == (COUNT, 1, f"{seq}")


def test_records_that_have_taken_the_contents_of_each_other_are_altered() -> None:
    documents = stored()
    documents[3]["data"], documents[4]["data"] = [{"v": "1"}], [{"v": "2"}]
    documents[3]["bench"]["seq"], documents[4]["bench"]["seq"] = 4, 3
    assert checked(documents).altered_ranges == "3-4"


def test_what_was_added_to_every_record_alters_none_and_hides_no_change() -> None:
    documents = stored()
    for document in documents:
        document["ingested"] = {"at": "today"}
        document["bench"]["topic"] = "tides"
    documents[77]["metadata"]["id"] = "another"
    sent = documents_of(MADE[:64], "r")
    few = compare_content(sent, {seq: documents[seq] for seq in sent})
    assert (few.added, few.altered) == ({("ingested",), ("bench", "topic")}, 0)
    assert (checked(documents, few).altered, checked(documents, few).altered_ranges) == (1, "77")
    assert checked(documents).altered == COUNT


def test_a_record_is_counted_once_however_often_it_is_stored() -> None:
    documents = stored()
    other = copy.deepcopy(documents[5])
    other["data"] = []
    found = checked([*documents, documents[6], other, other])
    assert (found.compared, found.altered, found.altered_ranges) == (COUNT, 1, "5")


def test_what_the_topic_shows_is_counted_along() -> None:
    few = Content(2, 1, "data gone", compared_seqs=(1, 2), altered_seqs=(2,))
    audit = ChecksumAudit(COUNT, few)
    assert audit.result("none") == Content(2, 1, "data gone", 0, "2", "none")
    audit.add(stored()[2:5])
    assert audit.result() == Content(4, 1, "data gone", 3, "2")


@pytest.mark.parametrize(
    "strange",
    [None, 1, [], {}, {"bench": None}, {"bench": {}}, {"bench": {"seq": "1"}}, {"bench": {"seq": -1}},
     {"bench": {"seq": COUNT}}, {"bench": {"seq": True}}, {"bench": [["seq", 1]]}],
)  # fmt: skip
def test_what_is_no_record_of_the_load_is_passed_by(strange: Any) -> None:
    assert checked([strange]) == Content()


def test_only_records_that_bear_checksums_are_to_be_checked() -> None:
    assert bear_checksums(documents_of(MADE[:3], "r"))
    assert not bear_checksums({})
    assert not bear_checksums({9: {"bench": {"seq": 9}}, **documents_of(MADE[:3], "r")})
    assert not bear_checksums(documents_of([json.dumps({"bench_run": "r", "bench_seq": 1}).encode()], "r", "row"))


def test_of_many_or_large_records_some_are_checked() -> None:
    assert (one_in(20_000, 512), one_in(20_001, 512), one_in(900_000, 512)) == (1, 2, 45)
    assert (one_in(100, 10_000_000), one_in(3, 1e12), one_in(0, 512)) == (34, 3, 1)
