"""A run of the user's own records says what they were like, and that they went round."""

from typing import Any

from sinkbench.results import RECORDS
from sinkbench.tables.records import record_lines
from tests.support.trials import cell_summary, run_summary

FACTS: dict[str, Any] = {
    "source": "orders.ndjson.gz", "sha256": "abcdef0123456789", "records": 1_000, "bytes": 600_000, "whole": True,
    "smallest_bytes": 100, "median_bytes": 500, "p95_bytes": 900, "largest_bytes": 20_000, "with_key": 1_000,
}  # fmt: skip


def lines(produced: int, trials: int, **facts: object) -> list[str]:
    audit = {"produced": produced, "stored": produced, "lost": 0, "duplicates": 0}
    cell = cell_summary("postgres/jdbc", *[1_000.0] * trials, audit=audit)
    return record_lines(run_summary(cell, environment={RECORDS: {**FACTS, **facts}}))


def test_nothing_is_said_of_the_records_of_noaa() -> None:
    assert record_lines(run_summary(cell_summary())) == []


def test_their_sizes_are_said() -> None:
    assert lines(3_000, 3) == [
        "Records: orders.ndjson.gz: 1,000 records of 600 bytes on average (from 100 to 20,000, half of them up to 500,"
        " 95 % up to 900); sha256 abcdef012345."
    ]


def test_what_must_be_known_of_them_is_said() -> None:
    (line,) = lines(10, 1, source="kafka://b:1/t", whole=False, with_key=900, left_out=7, records_per_second=12.3)
    for said in (
        "read up to where its partitions ended at the start",
        "the first ones only: no more than 256 MiB are kept",
        "100 of them have no key, and are sent without one",
        "7 without a value are left out",
        "they were written at 12.3 records/s",
    ):
        assert said in line


def test_that_they_went_round_is_said() -> None:
    assert lines(90_000, 3)[1].startswith("They are fewer than a trial took: they went round up to 30.0 times")
