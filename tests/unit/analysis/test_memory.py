"""The most memory that services held, and what they sent, out of the samples of a trial."""

from collections.abc import Sequence

from sinkbench.analysis.samples import Sample, memory_peaks, total_memory_peak
from sinkbench.results import Memory
from tests.support.trials import sample

PATH = ("kafka", "connect", "postgres", "pgbouncer")


def held(
    *readings: dict[str, float], services: Sequence[str] = ("kafka", "connect-1", "connect-2", "postgres")
) -> list[Sample]:
    """A sample a second, with what was read of memory; the CPU time tells which services there are."""
    return [
        sample(float(second), 100 * second, cpu_seconds=dict.fromkeys(services, 1.0), signs=signs)
        for second, signs in enumerate(readings)
    ]


def test_the_highest_reading_of_each_service_of_the_path_counts() -> None:
    samples = held(
        {"kafka_memory_bytes": 5.0, "connect_heap_bytes": 3.0},
        {},
        {"kafka_memory_bytes": 9.0, "connect_memory_bytes": 7.0, "connect_heap_bytes": 2.0},
        {"kafka_memory_bytes": 6.0, "elasticsearch_memory_bytes": 99.0},
    )
    assert memory_peaks(samples, PATH) == {
        "kafka": Memory(resident_bytes=9, heap_bytes=None),
        "connect": Memory(resident_bytes=7, heap_bytes=3),
    }
    assert memory_peaks([], PATH) == {}


def test_the_total_is_that_of_one_moment_and_of_the_records_path_alone() -> None:
    first = {"kafka": 5, "connect": 1, "postgres": 1, "elasticsearch": 99}
    samples = held(
        {f"{service}_memory_bytes": held_bytes for service, held_bytes in first.items()},
        {"kafka_memory_bytes": 1, "connect_memory_bytes": 2, "postgres_memory_bytes": 2},
        {"kafka_memory_bytes": 9},
    )
    assert total_memory_peak(samples, PATH) == 7


def test_a_service_that_was_not_seen_leaves_no_total() -> None:
    unseen = held({"kafka_memory_bytes": 5, "connect_memory_bytes": 1})
    assert total_memory_peak(unseen, PATH) is None
    assert total_memory_peak(held({"kafka_memory_bytes": 5}, services=()), PATH) is None
