"""What each of two steps accounts for of the way between two rates."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from sinkbench.analysis.intervals import interval_of, interval_of_median
from sinkbench.results import Interval


@dataclass(frozen=True)
class Share:
    """What one step accounts for, on the log scale.

    Attributes:
        estimate: 0.7 is 70 %; below 0 or above 1 if the two steps go in opposite directions.
        interval: of the estimate; None of fewer than 5 blocks.
    """

    estimate: float
    interval: Interval | None

    @property
    def rest(self) -> Share:
        """What the other step accounts for: both together are 1."""
        found = self.interval
        turned = found and interval_of(1 - found.high, 1 - found.low, found.method, found.blocks)
        return Share(1 - self.estimate, turned)


def share_of_first(start: Mapping[int, float], middle: Mapping[int, float], end: Mapping[int, float]) -> Share | None:
    """What the step from `start` to `middle` accounts for of the way from `start` to `end`; all are rates by block.

    The factors of the steps multiply, so their logarithms add up. In each block the share is ln(middle / start) /
    ln(end / start), in which what slows the whole block cancels; the estimate is the median of the blocks. So the
    other step's share, 1 less this one in every block, is also 1 less this one in the median.

    Returns:
        The share. None if no block has all three, if a rate is 0, or if `end` is not faster than `start` in each such
        block: then there is no difference to be shared out.
    """
    blocks = sorted(start.keys() & middle.keys() & end.keys())
    if not blocks or any(each[block] <= 0 for each in (start, middle, end) for block in blocks):
        return None
    if any(end[block] <= start[block] for block in blocks):
        return None
    shares = [math.log(middle[block] / start[block]) / math.log(end[block] / start[block]) for block in blocks]
    return Share(statistics.median(shares), interval_of_median(shares))
