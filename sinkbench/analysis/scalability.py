"""How a pipeline's rate grows with its tasks: the universal scalability law.

    X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))

N tasks store X records per second; lambda is the rate of one, sigma the contention (0 to 1), kappa the coherency. With
kappa it peaks at N* = sqrt((1 - sigma) / kappa). N. J. Gunther, Guerrilla Capacity Planning, Springer 2007, chapters 4
to 6; with lambda: B. Schwartz, Practical Scalability Analysis with the Universal Scalability Law, 2015.

Its inverse is linear: N / X = a + b N + c N (N - 1), with a + b = 1 / lambda, b = sigma / lambda, c = kappa / lambda,
none below 0, by constrained least squares (`scipy.optimize.nnls`) relative to the rate, as noise grows with it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.intervals import FEWEST_BLOCKS, interval_of, seed_of, widened_level
from sinkbench.results import Fit, Interval, Scaling, ScalingPoint

FEWEST_POINTS = 4
RESAMPLES = 1_000
# A law this close everywhere describes the data, even constant rates, for which R^2 says nothing.
CLOSE = 0.10
# Otherwise it must explain most of the differences and be within FAR everywhere.
LEAST_R_SQUARED = 0.95
FAR = 0.25


@dataclass(frozen=True)
class Law:
    """The law: lambda in records per second, sigma, kappa."""

    one_task: float
    contention: float
    coherency: float

    def rate(self, tasks: float) -> float:
        more = tasks - 1
        return self.one_task * tasks / (1 + self.contention * more + self.coherency * tasks * more)

    @property
    def peak(self) -> float:
        """The number of tasks with the highest rate: at least 1, infinite if the rate always rises."""
        return max(1.0, math.sqrt((1 - self.contention) / self.coherency)) if self.coherency > 0 else math.inf


def fit(rates: Mapping[int, float]) -> Law | None:
    """The law nearest to rates by tasks; None for fewer than 4 numbers of tasks, for a rate of 0, or if none fits."""
    if len(rates) < FEWEST_POINTS or any(rate <= 0 for rate in rates.values()):
        return None
    from scipy import optimize

    tasks = np.array(list(rates), dtype=np.float64)
    measured = np.array(list(rates.values()), dtype=np.float64)
    unit = float(measured.max())
    terms = np.stack([np.ones_like(tasks), tasks, tasks * (tasks - 1)], axis=1)
    found, _ = optimize.nnls(terms * (measured / unit / tasks)[:, None], np.ones_like(tasks))
    alone, contended, coherent = map(float, found)
    one = alone + contended
    return Law(unit / one, contended / one, coherent / one) if one > 0 else None


def scaling_of(label: str, workers: int, rates: Mapping[int, Mapping[int, float]]) -> Scaling:
    """How one pipeline scales, from valid rates by tasks, then by block; with bootstrap intervals from 5 blocks on.

    The fit is not `supported` with fewer than 4 numbers of tasks, or if a median is more than 10 % off and R^2 below
    0.95, or one is more than 25 % off. A peak needs kappa's interval above 0, sigma's below 1, and no more tasks."""
    medians = {tasks: float(np.median(list(each.values()))) for tasks, each in sorted(rates.items()) if each}
    usable = {tasks: rate for tasks, rate in medians.items() if rate > 0}
    if (law := fit(usable)) is None:
        why = "with more tasks the rates fall faster than the law knows"
        if len(usable) < FEWEST_POINTS:
            why = f"a fit needs rates at {FEWEST_POINTS} numbers of tasks, there are {len(usable)}"
        bare = [ScalingPoint(tasks=tasks, measured=rate) for tasks, rate in medians.items()]
        return Scaling(label=label, supported=False, why=why, points=bare)
    measured = np.array(list(usable.values()))
    fitted = np.array([law.rate(tasks) for tasks in usable])
    largest = float(np.max(np.abs(measured / fitted - 1)))
    spread = float(np.sum((measured - measured.mean()) ** 2))
    r_squared = 1 - float(np.sum((measured - fitted) ** 2)) / spread if spread > 0 else None
    supported = largest <= CLOSE or (largest <= FAR and r_squared is not None and r_squared >= LEAST_R_SQUARED)
    intervals = _intervals({tasks: rates[tasks] for tasks in usable})
    contention, coherency = intervals.get("contention"), intervals.get("coherency")
    falls = contention is not None and contention.high < 1 and coherency is not None and coherency.low > 0
    peak_shows = falls and law.peak <= max(usable)
    return Scaling(
        label=label,
        supported=supported,
        why=None if supported else f"a measured rate is {100 * largest:.0f} % off the fitted one",
        points=[
            ScalingPoint(
                tasks=tasks,
                measured=rate,
                fitted=law.rate(tasks),
                added_worker=law.rate(tasks + tasks / workers) - law.rate(tasks),
            )
            for tasks, rate in medians.items()
        ],
        one_task=Fit(estimate=law.one_task, interval=intervals.get("one_task")),
        contention=Fit(estimate=law.contention, interval=contention),
        coherency=Fit(estimate=law.coherency, interval=coherency),
        r_squared=r_squared,
        largest_residual=largest,
        peak_tasks=Fit(estimate=law.peak, interval=intervals.get("peak")) if peak_shows else None,
    )


def _intervals(rates: Mapping[int, Mapping[int, float]]) -> dict[str, Interval]:
    """Percentile intervals of the law's parameters and peak, over whole blocks, since a disturbance affects a block
    at every number of tasks. Empty for fewer than 5 blocks; no peak if one resample in forty puts it at infinity."""
    blocks = sorted(set.intersection(*(set(each) for each in rates.values())))
    if len(blocks) < FEWEST_BLOCKS:
        return {}
    values: npt.NDArray[np.float64] = np.array([[each[block] for block in blocks] for each in rates.values()])
    draw = np.random.default_rng(seed_of(values.ravel().tolist()))
    # Order within a resample does not matter, and five blocks have at most 126 distinct resamples.
    drawn = np.sort(draw.integers(0, len(blocks), (RESAMPLES, len(blocks))), axis=1)
    distinct, times = np.unique(drawn, axis=0, return_counts=True)
    laws: list[Law] = []
    for picked, count in zip(np.median(values[:, distinct], axis=2).T.tolist(), times.tolist(), strict=True):
        law = fit(dict(zip(rates, picked, strict=True)))
        laws += [law] * count if law else []
    if not laws:
        return {}
    tail = (1 - widened_level(len(blocks))) / 2
    found = {}
    for name in ("one_task", "contention", "coherency", "peak"):
        numbers = [getattr(law, name) for law in laws]
        # No interpolation: between a number and infinity there are no values.
        low, high = np.quantile(numbers, tail, method="lower"), np.quantile(numbers, 1 - tail, method="higher")
        if math.isfinite(high):
            found[name] = interval_of(float(low), float(high), "percentile bootstrap over blocks", len(blocks))
    return found
