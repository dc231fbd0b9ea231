"""Gaps in a drain in which no new record was seen in the sink."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sinkbench.analysis.rates import progress
from sinkbench.analysis.samples import Sample, middle, stored_counts

__all__ = ["Stall", "stalls"]

# A shorter gap may be a large batch, a checkpoint or a collection of garbage.
SHORTEST_SECONDS = 3.0
# Whoever writes in bunches has gaps all the time; a stall is longer than so many of them.
USUAL_GAPS = 5


@dataclass(frozen=True)
class Stall:
    """A gap of so many `seconds`, which began so many seconds after the first sample."""

    began_seconds: float
    seconds: float

    @property
    def in_words(self) -> str:
        """As `no new record was seen in the sink for 8.0 s, from second 4.2 on`."""
        return f"no new record was seen in the sink for {self.seconds:.1f} s, from second {self.began_seconds:.1f} on"


def stalls(samples: Sequence[Sample], records: int) -> list[Stall]:
    """The gaps in the `middle` of a drain of `records`, in their order.

    A gap is the time between two samples that showed more records than the one before, whether those between showed no
    more or could not be read. One of 3 s and more is a stall if it is also more than five times as long as the median
    gap of the drain. None of a drain that did not reach 90 %.
    """
    window = middle(samples, records)
    if window is None:
        return []
    times, counts = progress(*stored_counts(samples))
    rises = [float(at) for at, rise in zip(times[1:], np.diff(counts), strict=True) if rise > 0]
    gaps = [(before, after - before) for before, after in pairwise(rises)]
    if not gaps:
        return []
    usual = statistics.median(seconds for _, seconds in gaps)
    return [
        Stall(round(began - samples[0].seconds, 1), round(seconds, 1))
        for began, seconds in gaps
        if seconds >= max(SHORTEST_SECONDS, USUAL_GAPS * usual) and began + seconds > window[0] and began < window[1]
    ]
