"""Bytes that services received and sent for each record."""

from __future__ import annotations

from sinkbench.analysis.network import network_per_record
from sinkbench.results import Network


def test_what_came_between_the_readings_is_divided_by_the_records() -> None:
    found = network_per_record({"kafka": (7.0, 9.0)}, {"kafka": (1_007.0, 52_009.0)}, 100)
    assert found == {"kafka": Network(received=10.0, sent=520.0)}


def test_all_workers_are_one_service() -> None:
    before, after = (
        {"connect-1": (0.0, 0.0), "connect-2": (5.0, 5.0)},
        {"connect-1": (10.0, 0.0), "connect-2": (35.0, 25.0)},
    )
    assert network_per_record(before, after, 10) == {"connect": Network(received=4.0, sent=2.0)}


def test_a_service_that_was_not_seen_in_part_or_began_again_is_absent_and_not_smaller() -> None:
    seen, more = (5.0, 5.0), (9.0, 9.0)
    for before, after in (
        ({"kafka": seen}, {"kafka": (9.0, 4.0)}),
        ({"kafka": None}, {"kafka": more}),
        ({"kafka": seen}, {}),
        ({}, {"kafka": more}),
        ({"kafka-1": seen, "kafka-2": seen}, {"kafka-1": more, "kafka-2": None}),
    ):
        assert network_per_record(before, after, 10) == {}
    assert network_per_record({}, {}, 10) == {}
