"""A pipeline's rate by its tasks, with resamples of the trials, from which every figure gets its range.

The law of `analysis/scalability.py` where a run has one that describes it; else straight lines through 0 and the
measured rates, and beyond the last of these on with the slope before it, if that is not negative. A capacity that is
lower than the drain at its tasks lowers the whole curve by that factor, since a drain shows a peak."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.intervals import widened_level
from sinkbench.analysis.scalability import Law, fit
from sinkbench.size.measured import Measured

RESAMPLES = 500
SEED = 35
TWICE = 2.0
Rows = npt.NDArray[np.float64]
"""The estimate, then one value for each resample."""


@dataclass(frozen=True)
class Figure:
    """A figure with its range; `times` what was measured: 1 if that is exactly it, below if it lies within."""

    value: float
    low: float
    high: float
    times: float = 1.0

    @property
    def basis(self) -> str:
        if self.times <= 1:
            return "measured" if self.times == 1 else "within the measured"
        return "extrapolated" if self.times <= TWICE else "extrapolated beyond twice"


def exactly(value: float, times: float) -> Figure:
    return Figure(value, value, value, times)


def resampled(values: Sequence[float]) -> Rows:
    """The median, then those of resamples. One seed for all: figures with equally many trials are drawn by the same
    trials, so that what disturbed a block is in all of them together."""
    known = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(SEED).integers(0, known.size, (RESAMPLES, known.size))
    return np.concatenate([[np.median(known)], np.median(known[drawn], axis=1)])


def figure(rows: Rows, trials: int, times: float = 1.0) -> Figure:
    """The estimate with the range of its resamples: 95 %, widened for few trials, so of fewer than 5 lowest-highest."""
    if trials < 2:
        return exactly(float(rows[0]), times)
    tail = (1 - widened_level(trials)) / 2
    # No interpolation: what no number of tasks reaches is infinite.
    low, high = np.quantile(rows[1:], tail, method="lower"), np.quantile(rows[1:], 1 - tail, method="higher")
    # The law of the medians may lie outside those of few resamples.
    value = float(rows[0])
    return Figure(value, min(float(low), value), max(float(high), value), times)


class Curve:
    """Rates of a pipeline that has points."""

    def __init__(self, one: Measured) -> None:
        points = one.points or one.capacities
        self.tasks = sorted(points)
        self.trials = min(len(points[tasks].rates) for tasks in self.tasks)
        self.highest = max(float(np.median(points[tasks].rates)) for tasks in self.tasks)
        self._medians = np.stack([resampled(points[tasks].rates) for tasks in self.tasks], axis=1)
        self._laws = self._fitted(one)
        self._sustained = 1.0
        found = [each.rates[0] / float(self.at([tasks])[0, 0]) for tasks, each in one.capacities.items()]
        self._sustained = min([1.0, *found])

    @property
    def has_law(self) -> bool:
        return self._laws is not None

    def at(self, tasks: Sequence[int]) -> Rows:
        """Records/s with each number of tasks: a column each, a row for the estimate and for each resample."""
        wanted = np.asarray(tasks, dtype=np.float64)
        if self._laws is not None:
            one, contention, coherency = self._laws.T[..., None]
            more = wanted - 1
            return np.asarray(self._sustained * one * wanted / (1 + contention * more + coherency * wanted * more))
        known = np.array([0, *self.tasks], dtype=np.float64)
        rates = np.pad(self._medians, ((0, 0), (1, 0)))
        slope = np.maximum((rates[:, -1] - rates[:, -2]) / (known[-1] - known[-2]), 0)
        # A last step that is steeper than the way to it from 0 is noise.
        slope = np.minimum(slope, rates[:, -1] / known[-1])
        within = np.stack([np.interp(wanted, known, row) for row in rates])
        return np.asarray(self._sustained * (within + slope[:, None] * np.maximum(wanted - known[-1], 0)))

    def beyond(self, tasks: int) -> float:
        """How many times the most tasks measured."""
        return 1.0 if tasks in self.tasks else tasks / self.tasks[-1]

    def _fitted(self, one: Measured) -> Rows | None:
        found = one.scaling
        if found is None or found.one_task is None or found.contention is None or found.coherency is None:
            return None
        stored = Law(found.one_task.estimate, found.contention.estimate, found.coherency.estimate)
        # Few resamples have no law; they are as likely above as below it.
        laws = [fit(dict(zip(self.tasks, map(float, row), strict=True))) or stored for row in self._medians[1:]]
        return np.array([(law.one_task, law.contention, law.coherency) for law in (stored, *laws)])


def fewest(rates: Rows, tasks: Sequence[int], needed: float) -> Rows:
    """The fewest of the `tasks` with the needed rate, by row; infinite where none has it."""
    enough = rates >= needed
    first = np.asarray(tasks, dtype=np.float64)[np.argmax(enough, axis=1)]
    return np.where(enough.any(axis=1), first, math.inf)
