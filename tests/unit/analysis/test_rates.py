"""The rate of a drain, what is said of several, and where a warm-up ends, on curves whose end is known."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sinkbench.analysis.rates import Steadiness, drain_rate, mser, steadiness
from tests.support.present import present


@given(
    rate=st.floats(100, 200_000),
    seconds=st.floats(5, 60),
    interval=st.floats(0.1, 0.5),
    wait=st.floats(0.5, 5),
    jitter=st.integers(0, 2**32 - 1),
)
def test_a_constant_rate_is_found_within_the_sampling_error(
    rate: float, seconds: float, interval: float, wait: float, jitter: int
) -> None:
    total = int(rate * seconds)
    draw = np.random.default_rng(jitter)
    times = np.cumsum(draw.uniform(0.8, 1.2, int((seconds + wait) / interval * 1.5)) * interval)
    assume(times[-1] > seconds + wait)
    found = present(drain_rate(times, np.clip(np.floor((times - times[0] - wait) * rate), 0, total), total))
    assert found == pytest.approx(rate, rel=2 * 1.2 * interval / (0.8 * seconds))


@pytest.mark.parametrize(
    ("times", "stored"),
    [
        # A slow start and a slow end are outside the window.
        (range(41), np.interp(range(41), [0, 10, 18, 40], [0, 100, 900, 1000])),
        # A count that falls is no progress.
        (range(11), [0, 100, 200, 300, 400, 0, 600, 700, 800, 900, 1000]),
        # Out of order, and one without a count.
        ([3, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10], [300, 0, 100, 200, 400, float("nan"), 600, 700, 800, 900, 1000]),
    ],
)
def test_the_rate_is_that_of_the_middle_whatever_disturbs_the_samples(
    times: Sequence[float], stored: Sequence[float]
) -> None:
    assert present(drain_rate(times, stored, 1000)) == pytest.approx(100)


def test_a_stall_counts_by_its_length_wherever_it_falls() -> None:
    def with_stall_at(share: float) -> float:
        times = np.arange(0, 31.0)
        stored = np.interp(times, [0, 20 * share, 20 * share + 10, 30], [0, 2000 * share, 2000 * share, 2000])
        return present(drain_rate(times, stored, 2000))

    assert with_stall_at(0.2) == pytest.approx(with_stall_at(0.5)) == pytest.approx(1600 / 26)


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        ([], "no samples"),
        ([0], "one sample"),
        ([0, 0, 0, 0, 0, 0], "no progress"),
        ([0, 1000], "all of it between two samples"),
        ([0, 300, 600, 1000], "too few samples in the window"),
        ([0, 500, 500, 500, 500, 500, 500, 500, 1000], "many samples, but of two steps"),
        ([500, 600, 700, 750, 800, 850, 900, 1000], "begun before the first sample"),
        ([0, 100, 200, 300, 400, 500, 600, 700, 800], "given up before nine tenths"),
    ],
)
def test_a_drain_that_cannot_give_a_rate_gives_none(stored: list[float], why: str) -> None:
    assert drain_rate(range(len(stored)), stored, 1000) is None, why


def test_lists_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        drain_rate([1, 2], [1], 10)
    with pytest.raises(ValueError, match="total"):
        drain_rate([1, 2], [1, 2], 0)


Shape = Callable[[np.ndarray], np.ndarray]
INTERVAL = 0.25
SECONDS = 20.0
RATE = 10_000.0
CURVES = 60


def drained(shape: Shape, seed: int, noise: float = 0.2, seconds: float = SECONDS) -> tuple[list[float], list[float]]:
    """Samples of a drain whose rate is RATE x shape(share of its time), with noise a reading, after a second's wait."""
    draw = np.random.default_rng(seed)
    share = np.arange(0, 1, INTERVAL / seconds)
    rates = np.maximum(shape(share) * (1 + noise * draw.standard_normal(share.size)), 0)
    stored = np.concatenate([np.zeros(5), np.cumsum(rates) * RATE * INTERVAL])
    return (np.arange(stored.size) * INTERVAL).tolist(), np.floor(stored).tolist()


def judged(shape: Shape, noise: float = 0.2, seconds: float = SECONDS) -> list[Steadiness]:
    curves = (drained(shape, seed, noise, seconds) for seed in range(CURVES))
    return [steadiness(times, stored, int(stored[-1])) for times, stored in curves]


def share_of_steady(found: list[Steadiness]) -> float:
    return sum(each.steady is True for each in found) / len(found)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.2, 0.5])
def test_a_constant_rate_is_steady_from_its_start(noise: float) -> None:
    found = judged(np.ones_like, noise)
    assert share_of_steady(found) >= 0.95
    assert np.median([each.warm_up_seconds for each in found if each.warm_up_seconds is not None]) == 0


def test_the_rate_of_a_steady_trial_is_that_between_10_and_90_percent() -> None:
    differences = []
    for seed in range(CURVES):
        times, stored = drained(np.ones_like, seed)
        total = int(stored[-1])
        now = drain_rate(times, stored, total, from_seconds=steadiness(times, stored, total).from_seconds)
        differences.append(present(now) / present(drain_rate(times, stored, total)) - 1)
    assert abs(float(np.mean(differences))) < 0.01
    assert float(np.max(np.abs(differences))) < 0.06


def test_an_exponential_approach_is_cut_off_and_no_longer_lowers_the_rate() -> None:
    times, stored = drained(lambda share: 1 - np.exp(-share / 0.05), seed=1, noise=0.05)
    found = steadiness(times, stored, int(stored[-1]))
    assert found.steady
    assert 1 <= present(found.warm_up_seconds) <= 6
    rate = present(drain_rate(times, stored, int(stored[-1]), from_seconds=found.from_seconds))
    assert rate == pytest.approx(RATE, rel=0.03)


def test_a_step_is_cut_off_where_it_is() -> None:
    found = judged(lambda share: np.where(share < 0.3, 0.5, 1.0))
    assert share_of_steady(found) >= 0.8
    lengths = [each.warm_up_seconds for each in found if each.warm_up_seconds is not None]
    assert np.median(lengths) == pytest.approx(0.3 * SECONDS, abs=1.5)


@pytest.mark.parametrize(
    "shape",
    [
        lambda share: 0.2 + 0.8 * share,
        lambda share: 0.5 + 0.5 * share,
        lambda share: 1 - 0.5 * share,
        lambda share: np.where(share < 0.6, 0.5, 1.0),
        lambda share: np.where(share < 0.7, 0.5, 1.0),
        lambda share: 1 - np.exp(-share / 0.4),
    ],
    ids=["steep ramp", "ramp", "falling", "step beyond the half", "late step", "slow approach"],
)
def test_what_changes_until_the_end_never_becomes_steady(shape: Shape) -> None:
    found = judged(shape, noise=0.05)
    assert sum(each.steady is False for each in found) / len(found) >= 0.9
    assert all(each.warm_up_seconds is None for each in found if not each.steady)


@pytest.mark.parametrize("place", [0.2, 0.45, 0.7])
def test_a_stall_is_not_warm_up_and_stays_in_the_rate(place: float) -> None:
    found = judged(lambda share: np.where((share > place) & (share < place + 0.1), 0.0, 1.0), noise=0.1)
    assert share_of_steady(found) >= 0.9
    assert np.median([each.warm_up_seconds for each in found if each.warm_up_seconds is not None]) == 0


def test_a_short_window_tells_nothing() -> None:
    assert steadiness(range(12), range(0, 1200, 100), 1100) == Steadiness(None)
    assert steadiness([], [], 10) == Steadiness(None)
    assert steadiness(range(60), [0] * 60, 10) == Steadiness(None)


def test_mser_cuts_whole_batches_and_leaves_two() -> None:
    assert (mser([1.0] * 30, 30), mser([0.0] * 10 + [1.0] * 30, 40), mser([0.0] * 10 + [1.0] * 22, 32)) == (0, 10, 10)
    assert mser([float(number) for number in range(30)], 30) == 20
    assert (mser([float(number) for number in range(30)], 17), mser([1.0, 2.0], 2)) == (15, 0)
