"""The soak's verdict: what grows is told from what only scatters."""

import numpy as np
import pytest

from benchmarks.soak import slope_of, slopes_of

SECONDS = [float(second) for second in range(1_800)]


@pytest.mark.parametrize(("per_hour", "grows"), [(0.0, False), (30.0, True)])
def test_what_grows_is_told_with_its_slope_and_what_only_scatters_does_not_grow(per_hour: float, grows: bool) -> None:
    draw = np.random.default_rng(1)
    slope = slope_of(SECONDS, [100 + per_hour * second / 3600 + float(draw.normal(0, 2)) for second in SECONDS])
    assert slope.low < per_hour < slope.high
    assert slope.grows is grows


def test_what_hardly_grows_in_an_hour_is_no_leak() -> None:
    assert not slope_of(SECONDS, [100 + 0.5 * second / 3600 for second in SECONDS]).grows


def test_what_a_start_takes_is_left_out() -> None:
    readings = [{"files": 10.0 if second < 170 else 50.0} for second in SECONDS]
    assert slopes_of(SECONDS, readings)["files"].per_hour == 0


def test_a_soak_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="2 blocks of 60 s give no slope"):
        slope_of([0.0, 59.0, 60.0], [1.0, 1.0, 1.0])
