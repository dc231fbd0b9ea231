"""The search for the fastest way to write, against simulated clients, and what a limit took."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.limits.measure import LimitJob
from sinkbench.limits.tune import GAIN, MOST_LENGTHS, TOO_SHORT, Measured, Point, Tuned, lengthen, tune, with_costs
from sinkbench.results import Limit, LimitStep
from sinkbench.trial.observer import Observer
from tests.support.present import present
from tests.support.trials import sample

COMPILING = "elasticsearch_compiler_cpu_seconds_total"
SETTLED = Limit(sink="elasticsearch", way="bulk", records_per_second=9e4, connections=2, batch=512)


def costs(before: dict[str, float | None], after: dict[str, float | None], compiled: float = 0.0) -> Measured:
    first = sample(10.0, None, cpu_seconds=before, signs={COMPILING: 5.0})
    last = sample(12.5, None, cpu_seconds=after, signs={COMPILING: 5.0 + compiled})
    return with_costs(9e4, first, last, 500_000, 0.75)


def test_cpu_time_is_given_per_million_records_for_each_service_and_the_clients() -> None:
    found = costs({"elasticsearch": 100.0, "connect-1": 7.0}, {"elasticsearch": 104.0, "connect-1": 7.5}, 2.0)
    assert found.cpu_seconds_per_million == pytest.approx({"elasticsearch": 8.0, "connect": 1.0, "client": 1.5})
    assert found.compiling_share == pytest.approx(2 / 5.25)
    # Counters that began again.
    assert costs({"elasticsearch": 100.0}, {"elasticsearch": 3.0}).cpu_seconds_per_million["elasticsearch"] is None


def job(again: Callable[[Point, Observer], Measured] | None) -> LimitJob:
    return LimitJob("elasticsearch", "bulk", lambda observer: Tuned(None, []), again)


@pytest.mark.parametrize(
    ("measured", "most_compiling", "problem"),
    [
        (Measured(8e4, None, {"elasticsearch": 8.0}, 0.3), 0.6, None),
        (Measured(8e4, None, {"elasticsearch": 8.0}, 0.3), 0.2, "not warm: 30 % of the CPU time went into compiling"),
        (Measured(None, "429"), 0.2, "429"),
        (Measured(0.0), 0.2, "nothing was stored"),
    ],
)
def test_in_a_block_the_setting_that_was_found_is_measured_and_what_was_disturbed_has_no_rate(
    measured: Measured, most_compiling: float, problem: str | None
) -> None:
    again = job(lambda point, observer: {Point(512, 2): measured}[point])
    found = again.in_block(SETTLED, 3, most_compiling, Observer())
    assert (found.block, found.problem) == (3, problem)
    assert found.records_per_second == (None if problem else 8e4)
    assert found.cpu_seconds_per_million == ({} if problem else {"elasticsearch": 8.0})


@pytest.mark.parametrize("limit", [SETTLED, SETTLED.model_copy(update={"batch": None})])
def test_what_is_measured_once_is_not_measured_in_blocks(limit: Limit) -> None:
    again = None if limit.batch else lambda point, observer: Measured(1.0)
    with pytest.raises(ValueError, match="not measured in blocks"):
        job(again).in_block(limit, 1, 0.2, Observer())


FIRST, LARGEST = Point(256, 1), Point(32_768, 64)
halves = st.floats(1, 100_000)


class Client:
    """A client whose rate saturates with the batch and with the connections, and that fails beyond some batch."""

    def __init__(self, half_batch: float, half_connections: float, fails_from: int = 10**9) -> None:
        self.half_batch, self.half_connections, self.fails_from = half_batch, half_connections, fails_from
        self.asked: list[tuple[Point, bool]] = []

    def rate(self, point: Point) -> float:
        batch, connections = point.batch, point.connections
        return 200_000 * batch / (batch + self.half_batch) * connections / (connections + self.half_connections)

    def __call__(self, point: Point, confirms: bool) -> Measured:
        self.asked.append((point, confirms))
        if point.batch >= self.fails_from:
            return Measured(None, "429 Too Many Requests")
        return Measured(self.rate(point))


def best(found: Tuned) -> Point:
    return point_of(present(found.best))


def point_of(step: LimitStep) -> Point:
    return Point(step.batch or 0, step.connections)


@given(halves, st.floats(0.1, 100), st.integers(FIRST.batch + 1, 65_536))
def test_a_step_that_fails_is_never_taken(half_batch: float, half_connections: float, fails_from: int) -> None:
    assert best(tune(Client(half_batch, half_connections, fails_from), FIRST, LARGEST)).batch < fails_from


@given(halves, st.floats(0.1, 100))
def test_each_point_is_measured_once_and_the_one_that_no_doubling_betters_is_confirmed(
    half_batch: float, half_connections: float
) -> None:
    client = Client(half_batch, half_connections)
    found = tune(client, FIRST, LARGEST)
    at = best(found)
    for following in (Point(2 * at.batch, at.connections), Point(at.batch, 2 * at.connections)):
        if following.batch <= LARGEST.batch and following.connections <= LARGEST.connections:
            assert client.rate(following) <= client.rate(at) * (1 + GAIN) * (1 + 1e-9)
    searched = [point for point, confirms in client.asked if not confirms]
    assert len(searched) == len(set(searched))
    assert [point for point, confirms in client.asked if confirms] == [at]
    assert [(point_of(step), step.confirms) for step in found.path] == client.asked


def test_connections_are_stepped_up_after_the_batch_and_the_batch_again_after_them() -> None:
    def measure(point: Point, confirms: bool) -> Measured:
        # A larger batch pays only with two connections, as where one waits while the other works.
        pays = point.connections == 2 and point.batch > 256
        return Measured(100.0 * min(point.connections, 2) * (2.0 if pays else 1))

    assert best(tune(measure, FIRST, LARGEST)) == Point(512, 2)


@pytest.mark.parametrize("slow", [Point(512, 1), Point(1024, 2)])
def test_one_step_that_was_slow_by_chance_does_not_end_the_search(slow: Point) -> None:
    def measure(point: Point, confirms: bool) -> Measured:
        if point == slow:
            return Measured(50.0)
        return Measured(100.0 * min(point.connections, 4) * min(point.batch, 1024) / 256)

    assert best(tune(measure, FIRST, LARGEST)) == Point(1024, 4)


def test_the_rate_is_that_of_the_longer_measurement() -> None:
    found = tune(lambda point, confirms: Measured(90.0 if confirms else 100.0), FIRST, LARGEST)
    assert present(found.best).records_per_second == 90.0


def test_what_cannot_be_confirmed_gives_way_to_the_next_fastest() -> None:
    def measure(point: Point, confirms: bool) -> Measured:
        if confirms and point.batch == 512:
            return Measured(None, "stored 1 of 2")
        return Measured(float(min(point.batch, 512)))

    assert best(tune(measure, FIRST, Point(512, 1))) == Point(256, 1)


@pytest.mark.parametrize("rate", [None, 0.0])
def test_where_nothing_can_be_written_no_limit_is_found_and_nothing_more_is_tried(rate: float | None) -> None:
    found = tune(lambda point, confirms: Measured(rate, "no"), FIRST, LARGEST)
    assert found.best is None
    assert [point_of(step) for step in found.path] == [FIRST]


@given(expected=st.floats(100, 200_000), real=st.floats(100, 200_000), least=st.floats(0.1, 1.0))
def test_a_topic_is_lengthened_until_it_lasts_long_enough(expected: float, real: float, least: float) -> None:
    asked: list[int] = []

    def measure(point: Point) -> Measured:
        asked.append(point.batch)
        return Measured(real) if point.batch >= least * real else Measured(None, TOO_SHORT)

    found = lengthen(measure, lambda rate: Point(max(1, round(3 * rate)), 3), expected)
    assert asked == sorted(set(asked))
    assert [step.confirms for step in found.path] == [False] * (len(asked) - 1) + [True]
    # Of three seconds at least half, unless a pilot was so slow that even the most tries do not reach it.
    assert asked[-1] >= 1.5 * real or len(asked) == MOST_LENGTHS


def test_what_fails_for_another_reason_is_not_tried_with_more_records() -> None:
    found = lengthen(lambda point: Measured(None, "no such table"), lambda rate: Point(round(rate), 3), 1_000.0)
    assert (found.best, [step.problem for step in found.path]) == (None, ["no such table"])
