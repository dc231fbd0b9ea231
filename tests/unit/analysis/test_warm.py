"""How much of their CPU time JVMs spend on themselves."""

from functools import partial

import pytest

from sinkbench.analysis.samples import COMPILER, compiling_share, jvm_cpu_per_million, jvm_cpu_seconds
from sinkbench.results import JvmCpu
from tests.support.trials import drain_of, sample

drain = partial(drain_of, {"kafka": 1.0, "connect-1": 0.5, "connect-2": 0.5, "postgres": 2.0, "controller": 9.0})


def test_what_jvms_spend_on_themselves_is_taken_from_the_middle_of_the_drain() -> None:
    samples = drain(kafka_compiler_cpu_seconds_total=0.2, kafka_gc_cpu_seconds_total=0.1)
    assert jvm_cpu_seconds(samples, COMPILER, 1, 9) == {"kafka": pytest.approx(1.6)}
    # 1.6 and 0.8 seconds for 800 records.
    assert jvm_cpu_per_million(samples, 1_000) == {"kafka": JvmCpu(compiler=2000.0, gc=1000.0)}


def test_a_drain_that_did_not_end_tells_nothing() -> None:
    assert jvm_cpu_per_million(drain(kafka_compiler_cpu_seconds_total=0.2), 2_000) == {}


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
