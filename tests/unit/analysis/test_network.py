"""Bytes that services received and sent for each record."""

from __future__ import annotations

from sinkbench.analysis.network import network_per_record
from sinkbench.analysis.samples import Sample
from sinkbench.results import Network
from tests.support.trials import sample


def drained(every: int = 1, **rates: float) -> list[Sample]:
    """A drain of 1,000 records in ten seconds, with signs that rise by so much a second and are read now and then."""
    return [
        sample(
            float(second),
            100 * second,
            signs={name: 7 + rate * second for name, rate in rates.items()} if second % every == 0 else {},
        )
        for second in range(11)
    ]


def test_the_bytes_of_the_drain_are_those_of_its_records() -> None:
    found = network_per_record(drained(kafka_received_bytes_total=100.0, kafka_sent_bytes_total=52_000.0))
    assert found == {"kafka": Network(received=1.0, sent=520.0)}
    assert network_per_record(drained(kafka_sent_bytes_total=52_000.0)) == {"kafka": Network(sent=520.0)}


def test_the_records_are_those_of_the_readings() -> None:
    assert network_per_record(drained(4, kafka_sent_bytes_total=52_000.0)) == {"kafka": Network(sent=520.0)}


def test_what_was_fetched_before_it_was_stored_counts() -> None:
    # All is fetched in the first second.
    fetched = [
        sample(float(second), 100 * second, signs={"kafka_sent_bytes_total": min(second, 1) * 6e5})
        for second in range(11)
    ]
    assert network_per_record(fetched) == {"kafka": Network(sent=600.0)}


def test_a_count_that_began_again_or_was_read_once_and_a_drain_that_stored_nothing_tell_nothing() -> None:
    assert network_per_record(drained(kafka_sent_bytes_total=-5.0)) == {}
    assert network_per_record(drained(11, kafka_sent_bytes_total=5.0)) == {}
    assert (
        network_per_record([sample(second, 0, signs={"kafka_sent_bytes_total": second}) for second in (0.0, 1.0)]) == {}
    )
