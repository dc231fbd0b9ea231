"""What samples say of memory, of the CPU time that JVMs spend on themselves, and of what is read and not stored."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from sinkbench.analysis.samples import (
    COMPILER,
    READ,
    Sample,
    compiling_share,
    is_far_ahead,
    jvm_cpu_per_million,
    jvm_cpu_seconds,
    memory_peaks,
    node_cpu_ratio,
    read_ahead,
    total_memory_peak,
)
from sinkbench.results import JvmCpu, Memory
from tests.support.trials import drain_of, sample

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
    assert total_memory_peak(held({"kafka_memory_bytes": 5, "connect_memory_bytes": 1}), PATH) is None
    assert total_memory_peak(held({"kafka_memory_bytes": 5}, services=()), PATH) is None


drain = partial(drain_of, {"kafka": 1.0, "connect-1": 0.5, "connect-2": 0.5, "postgres": 2.0, "controller": 9.0})


def test_what_jvms_spend_on_themselves_is_taken_from_the_middle_of_the_drain() -> None:
    samples = drain(kafka_compiler_cpu_seconds_total=0.2, kafka_gc_cpu_seconds_total=0.1)
    assert jvm_cpu_seconds(samples, COMPILER, 1, 9) == {"kafka": pytest.approx(1.6)}
    # 1.6 and 0.8 seconds for 800 records.
    assert jvm_cpu_per_million(samples, 1_000) == {"kafka": JvmCpu(compiler=2000.0, gc=1000.0)}
    assert jvm_cpu_per_million(samples, 2_000) == {}


def test_nodes_of_a_service_are_compared_by_the_busiest_and_the_least_busy() -> None:
    uneven = partial(drain_of, {"connect-1": 0.6, "connect-2": 0.2, "connect-3": 0.3, "kafka": 1.0})
    assert node_cpu_ratio(uneven(), 1_000) == {"connect": pytest.approx(3)}
    assert node_cpu_ratio(uneven(), 2_000) == {}


def test_the_share_is_of_the_cpu_of_all_services() -> None:
    assert compiling_share(drain(kafka_compiler_cpu_seconds_total=0.2), 1, 9) == pytest.approx(0.2 / 4)
    both = drain(kafka_compiler_cpu_seconds_total=0.2, connect_compiler_cpu_seconds_total=0.4)
    assert compiling_share(both, 1, 9) == pytest.approx(0.6 / 4)


def test_what_is_read_seldom_does_not_seem_to_stand_still_at_the_end() -> None:
    throttled = [
        each if second % 4 == 0 else sample(each.seconds, each.stored, cpu_seconds=each.cpu_seconds)
        for second, each in enumerate(drain(kafka_compiler_cpu_seconds_total=0.2))
    ]
    assert compiling_share(throttled, 5, 10) == pytest.approx(0.2 / 4)


def test_elapsed_time_by_jmx_serves_where_no_thread_is_seen_and_is_never_more_than_all() -> None:
    seen = drain(connect_compilation_seconds_total=0.3, connect_cpu_seconds_total=0.6)
    assert compiling_share(seen, 1, 9) == pytest.approx(0.5)
    assert compiling_share(drain(connect_compilation_seconds_total=3, connect_cpu_seconds_total=0.6), 1, 9) == 1


def test_nothing_is_known_without_counters_or_of_a_process_that_has_begun_anew() -> None:
    assert compiling_share(drain(), 1, 9) is None
    samples = drain(kafka_compiler_cpu_seconds_total=0.2)
    anew = [*samples[:5], *(sample(each.seconds, each.stored, signs=samples[0].signs) for each in samples[5:])]
    assert jvm_cpu_seconds(anew[2:], COMPILER, 2, 9) == {}
    assert compiling_share([*anew[:5], *drain(kafka_compiler_cpu_seconds_total=-1)[5:]], 1, 9) is None


@pytest.mark.parametrize(
    ("seen", "most"),
    [
        ([(0, 0), (30_000, 121_000), (87_000, 255_000), (400_000, 400_000)], 168_000),
        ([(None, 400_000), (0, None), (10, 15)], 5),
        ([(0, None), (400_000, None)], None),
        # These tasks began their counts anew.
        ([(1_000, 10)], 0),
    ],
)
def test_the_most_counts_of_the_moments_at_which_both_are_known(seen: list[tuple[Any, Any]], most: int | None) -> None:
    samples = [sample(at, stored, signs={} if read is None else {READ: read}) for at, (stored, read) in enumerate(seen)]
    assert read_ahead(samples) == most


@pytest.mark.parametrize(
    ("ahead", "records", "far"),
    [
        (None, 400_000, False),
        (15_000, 20_000, False),  # an aggregate of each task
        (50_000, 400_000, False),
        (50_001, 400_000, True),
    ],
)
def test_few_records_are_on_their_way_in_every_connector(ahead: int | None, records: int, far: bool) -> None:
    assert is_far_ahead(ahead, records) is far
