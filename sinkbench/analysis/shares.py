"""The shares of two steps in the difference between two rates."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from sinkbench.analysis.intervals import interval_of, interval_of_median
from sinkbench.results import Interval


@dataclass(frozen=True)
class Share:
    """The share of one step, on the log scale; below 0 or above 1 if the steps go in opposite directions."""

    estimate: float
    interval: Interval | None

    @property
    def rest(self) -> Share:
        found = self.interval
        turned = found and interval_of(1 - found.high, 1 - found.low, found.method, found.blocks)
        return Share(1 - self.estimate, turned)


def share_of_first(start: Mapping[int, float], middle: Mapping[int, float], end: Mapping[int, float]) -> Share | None:
    """The share of the step `start` to `middle` in the difference `start` to `end`: the median over blocks of
    ln(middle / start) / ln(end / start). None if no block has all three, a rate is 0, or `end` is not faster in each
    such block."""
    blocks = sorted(start.keys() & middle.keys() & end.keys())
    if not blocks or any(each[block] <= 0 for each in (start, middle, end) for block in blocks):
        return None
    if any(end[block] <= start[block] for block in blocks):
        return None
    shares = [math.log(middle[block] / start[block]) / math.log(end[block] / start[block]) for block in blocks]
    return Share(statistics.median(shares), interval_of_median(shares))
