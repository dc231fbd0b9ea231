"""Latency under a constant load, and whether its lag (records in the topic and not in the sink) stays bounded.

Latency counts from `due_us`, when the schedule meant to send a record, so that a stall delays all records due meanwhile
(no coordinated omission: G. Tene); in an HdrHistogram of microseconds with three significant digits.

Readings of lag are not independent, so after the warm-up (`rates.mser`) a line is fitted by least squares to the means
of 10 to 20 equal batches, with the usual t interval of its slope (batch means: A. M. Law, "Simulation Modeling and
Analysis", 5th ed. 2015, section 9.5.3)."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.intervals import CONFIDENCE, interval_of
from sinkbench.analysis.rates import Numbers, most, mser
from sinkbench.results import Lag, LatencyMs

DIGITS = 3
HIGHEST_US = 3_600_000_000
BEYOND = 10
"""The samples that must lie beyond a quantile."""
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def supports(count: int, quantile: float) -> bool:
    """Whether 10 of `count` samples lie beyond `quantile` (0 to 1): p50 needs 20, p95 200, p99 1,000, p999 10,000."""
    # In millionths: 0.001 has no exact binary form.
    return count * round((1 - quantile) * 1_000_000) >= BEYOND * 1_000_000


def latency_of(
    latencies_us: npt.ArrayLike, one_in: int = 1, resolution_ms: float | None = None, unknown: int = 0
) -> LatencyMs:
    """The distribution of latencies in microseconds, when one in `one_in` records was read; `resolution_ms` is that
    of the time of storing, and `unknown` counts records without one. Negative ones (clocks disagree) only count."""
    values = np.asarray(latencies_us, dtype=np.float64)
    histogram = _no_latencies()
    positive = values[values >= 0]
    whole = np.clip(np.rint(positive), 1, HIGHEST_US).astype(np.int64)
    for value, count in zip(*(part.tolist() for part in np.unique(whole, return_counts=True)), strict=True):
        histogram.record_value(value, count)
    return LatencyMs(
        **_figures(histogram),
        one_in=one_in,
        negative=int(values.size - positive.size),
        earliest=round(-float(values.min()) / 1000, 3) if positive.size < values.size else None,
        unknown=unknown,
        resolution_ms=None if resolution_ms is None else round(resolution_ms, 3),
    )


def merged(parts: Iterable[LatencyMs | None]) -> LatencyMs | None:
    """The distribution over all records of several trials; None if no trial has one."""
    if not (known := [part for part in parts if part is not None and part.histogram is not None]):
        return None
    histogram = _no_latencies()
    for part in known:
        histogram.add(histogram.decode(part.histogram))
    return LatencyMs(
        **_figures(histogram),
        one_in=max(part.one_in for part in known),
        negative=sum(part.negative for part in known),
        earliest=most(part.earliest for part in known),
        unknown=sum(part.unknown for part in known),
        resolution_ms=most(part.resolution_ms for part in known),
    )


def _no_latencies() -> Any:
    # What prints a run needs none.
    from hdrh.histogram import HdrHistogram

    return HdrHistogram(1, HIGHEST_US, DIGITS)


def _figures(histogram: Any) -> dict[str, Any]:
    count = int(histogram.get_total_count())
    return {
        **{
            name: float(histogram.get_value_at_percentile(100 * share)) / 1000 if supports(count, share) else None
            for name, share in QUANTILES.items()
        },
        "max": float(histogram.get_max_value()) / 1000 if count else None,
        "count": count,
        "histogram": histogram.encode().decode("ascii"),
    }


BOUNDED: Literal["bounded"] = "bounded"
GROWING: Literal["growing"] = "growing"
UNCLEAR: Literal["cannot tell"] = "cannot tell"
NEGLIGIBLE = 0.01
"""Growth below this share of the offered rate counts as none: no run is long enough to exclude all growth."""
FEWEST_BATCHES, MOST_BATCHES = 10, 20


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
    readings before `from_seconds` are warm-up."""
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
    return _judged(float(fit.slope), reach, offered, ("least squares over batch means", batches), largest, last)


def pooled(lags: Sequence[Lag], offered: float) -> Lag | None:
    """What two or more trials of one load tell together: their mean slope, with independent errors (the fixed effect of
    L. V. Hedges and I. Olkin, "Statistical Methods for Meta-Analysis", 1985, with equal weights). A lag that falls, as
    after a bad start, counts as level: it must not hide another one that grows."""
    spans = [lag.interval.high - lag.interval.low for lag in lags if lag.interval is not None]
    if len(lags) < 2 or len(spans) < len(lags):
        return None
    slope, reach = (sum(max(lag.growth_per_second or 0.0, 0.0) for lag in lags), math.hypot(*spans) / 2)
    most_of = [most(getattr(lag, name) for lag in lags) for name in ("largest", "last")]
    return _judged(slope / len(lags), reach / len(lags), offered, ("mean slope of the trials", len(lags)), *most_of)


def _judged(slope: float, reach: float, offered: float, how: tuple[str, int], *seen: int | None) -> Lag:
    low, high, bound = slope - reach, slope + reach, NEGLIGIBLE * offered
    verdict = GROWING if low > bound else BOUNDED if high <= bound else UNCLEAR
    interval = interval_of(round(low, 3), round(high, 3), *how)
    return Lag(verdict=verdict, growth_per_second=round(slope, 3), interval=interval, largest=seen[0], last=seen[1])


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
