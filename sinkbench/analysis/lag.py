"""Whether a pipeline keeps up with a constant load: a verdict from readings of its lag (records in the topic and not in
the sink).

Readings are not independent, so after the warm-up (`steady.mser`) a line is fitted by least squares to the means of 10
to 20 equal batches, with the usual t interval of its slope (batch means: A. M. Law, "Simulation Modeling and Analysis",
5th ed. 2015, section 9.5.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.intervals import CONFIDENCE, interval_of
from sinkbench.analysis.steady import mser
from sinkbench.results import Lag

BOUNDED: Literal["bounded"] = "bounded"
GROWING: Literal["growing"] = "growing"
UNCLEAR: Literal["cannot tell"] = "cannot tell"
NEGLIGIBLE = 0.01
"""Growth below this share of the offered rate counts as none: no run is long enough to exclude all growth."""
FEWEST_BATCHES, MOST_BATCHES = 10, 20

Numbers = npt.NDArray[np.float64]


def warm_from(times_seconds: Sequence[float], lags: Sequence[float]) -> float | None:
    """When the lag had settled, on the readings' clock; None for too few readings."""
    times, values = _known(times_seconds, lags)
    if times.size < 2 * FEWEST_BATCHES:
        return None
    return float(times[mser(values, values.size // 2)])


def lag_of(
    times_seconds: Sequence[float], lags: Sequence[float], offered: float, from_seconds: float | None = None
) -> Lag:
    """The verdict on readings of lag while `offered` records per second were offered.

    It is "growing" if the slope's interval lies above 1 % of the load, "bounded" if below, else or for fewer than 20
    readings "cannot tell". Times run from the start of the load until its last record was due; NaN is an unknown lag;
    readings before `from_seconds` are warm-up.
    """
    times, values = _known(times_seconds, lags)
    largest = None if not values.size else round(float(values.max()))
    last = None if not values.size else round(float(values[-1]))
    warm = times >= (-math.inf if from_seconds is None else from_seconds)
    times, values = times[warm], values[warm]
    if times.size < 2 * FEWEST_BATCHES or times[-1] <= times[0]:
        return Lag(verdict=UNCLEAR, largest=largest, last=last)
    batches = min(MOST_BATCHES, times.size // 2)
    middles, means = ([part.mean() for part in np.array_split(column, batches)] for column in (times, values))
    # Imported here: it takes a second, and most commands do not need it.
    from scipy import stats

    fit = stats.linregress(middles, means)
    # For a perfect line rounding may make the squared error negative, and the error NaN.
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, batches - 2)) * float(np.nan_to_num(fit.stderr))
    slope, bound = float(fit.slope), NEGLIGIBLE * offered
    low, high = slope - reach, slope + reach
    return Lag(
        verdict=GROWING if low > bound else BOUNDED if high <= bound else UNCLEAR,
        growth_per_second=round(slope, 3),
        interval=interval_of(round(low, 3), round(high, 3), "least squares over batch means", batches),
        largest=largest,
        last=last,
    )


def lag_in_words(lag: Lag | None) -> str:
    if lag is None or lag.interval is None:
        return "cannot tell whether the lag grows: too few samples"
    between = f"{lag.interval.low:,.0f} to {lag.interval.high:,.0f} records/s"
    if lag.verdict == BOUNDED:
        return f"lag bounded (growth {between})"
    if lag.verdict == GROWING:
        return f"lag grows by {lag.growth_per_second:,.0f} records/s ({between})"
    return f"cannot tell whether the lag grows ({between})"


def _known(times_seconds: Sequence[float], lags: Sequence[float]) -> tuple[Numbers, Numbers]:
    times, values = np.asarray(times_seconds, dtype=np.float64), np.asarray(lags, dtype=np.float64)
    known = np.isfinite(values)
    return times[known], values[known]
