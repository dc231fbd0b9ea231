"""A limit over its blocks."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.limits import best, fastest, rates_by_block, with_block
from sinkbench.results import Limit, LimitInBlock, LimitStep
from tests.support.present import present
from tests.support.trials import limit_over

SEARCHED = Limit(sink="postgres", way="COPY", records_per_second=150_000, connections=2, batch=512)
over = partial(limit_over, SEARCHED)


def test_a_limit_is_the_median_of_its_blocks_with_a_rate_and_no_longer_what_the_search_has_found() -> None:
    limit = over(100.0, None, 130.0, 110.0)
    assert rates_by_block(limit) == {1: 100.0, 3: 130.0, 4: 110.0}
    assert ((spread := present(limit.spread)).low, spread.high, spread.interval) == (100.0, 130.0, None)
    assert (limit.records_per_second, limit.connections, limit.batch, limit.note) == (110.0, 2, 512, None)
    assert [each.problem for each in limit.in_blocks] == [None, "429", None, None]


@given(st.lists(st.floats(1, 1e6), min_size=5, max_size=9))
def test_from_five_blocks_on_a_limit_has_an_interval(rates: list[float]) -> None:
    interval = present(present(over(*rates).spread).interval)
    assert min(rates) <= interval.low <= interval.high <= max(rates)


def test_what_no_block_has_confirmed_is_no_limit() -> None:
    limit = over(None, None)
    assert (limit.records_per_second, limit.spread, limit.note) == (None, None, "429")
    assert fastest([limit], "postgres") is None
    # The next block may bring one.
    again = with_block(limit, LimitInBlock(block=3, records_per_second=90.0))
    assert (again.records_per_second, again.note) == (90.0, None)


def test_a_slower_way_does_not_stand_in_for_one_that_was_disturbed() -> None:
    searched = [LimitStep(connections=2, records_per_second=150_000, confirms=True)]
    copy = over(None, None).model_copy(update={"path": searched})
    insert = Limit(sink="postgres", way="INSERT", records_per_second=70_000)
    assert fastest([insert, copy], "postgres") == copy
    assert (best([insert, copy], "postgres"), best([insert, SEARCHED], "postgres")) == (None, 150_000)
    assert best([insert, SEARCHED], "elasticsearch") is None


def test_cpu_time_is_the_median_of_the_blocks_that_know_it() -> None:
    cpus: list[dict[str, float | None]] = [{"postgres": 8.0, "client": 1.0}, {"postgres": None, "client": 3.0}, {}]
    limit = SEARCHED
    for block, cpu in enumerate(cpus, start=1):
        limit = with_block(limit, LimitInBlock(block=block, records_per_second=1.0, cpu_seconds_per_million=cpu))
    assert limit.cpu_seconds_per_million == {"postgres": 8.0, "client": 2.0}
