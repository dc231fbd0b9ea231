"""Searches the highest rate that a pipeline sustains. Pure.

Bracket: the rate rises until it is not sustained, or falls until it is. Bisect on the log scale. Confirm: several
fresh trials must all sustain the candidate; else it falls by the precision, a few times at most."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sinkbench.analysis.latency import BOUNDED
from sinkbench.results import SearchStep

INVALID = "invalid"
BRACKET_FACTOR = 1.4
# Down to a sixtieth of the first offer: a slower pipeline does not run.
MOST_BRACKET_STEPS = 12
MOST_CANDIDATES = 4
# An invalid trial is repeated once.
MOST_INVALID = 2
LEAST_RATE = 1.0


@dataclass(frozen=True)
class Offer:
    """The next rate to offer, and whether its trial confirms a candidate."""

    records_per_second: float
    confirms: bool = False


class CapacitySearch:
    """One search. Call `next` and `take` in turn until `next` returns None."""

    def __init__(self, start: float, most: float, precision: float, confirmations: int) -> None:
        """Searches from `start` up to `most`, the generator's maximum, in records per second.

        Bisection ends at the relative distance `precision`; `confirmations` trials must sustain the result.
        """
        self._most = most
        self._precision = precision
        self._confirmations = confirmations
        self._rate = min(start, most)
        self._low: float | None = None
        self._high: float | None = None
        self._brackets = 0
        self._invalid = 0
        self._candidate: float | None = None
        self._candidates = 0
        self._confirmed = 0
        self._ended = False
        self.path: list[SearchStep] = []
        """Every offer so far, in order, with its outcome."""
        self.problem: str | None = None
        """Why the search ended without a capacity."""

    @property
    def capacity(self) -> float | None:
        """The confirmed rate in records per second; None if there is none yet."""
        return self._candidate if self._ended and self.problem is None else None

    @property
    def at_most_of_generator(self) -> bool:
        """Whether the load generator, not the pipeline, limits the capacity."""
        return self.capacity is not None and self._high is None

    def next(self) -> Offer | None:
        return None if self._ended else Offer(self._rate, confirms=self._candidate is not None)

    def take(self, outcome: str, growth_per_second: float | None = None, problem: str | None = None) -> None:
        """Takes the verdict on the last offer's lag, or `INVALID` with the reason as `problem`."""
        confirms = self._candidate is not None
        offered = round(self._rate, 1)
        step = SearchStep(
            offered=offered, outcome=outcome, growth_per_second=growth_per_second, confirms=confirms, problem=problem
        )
        self.path.append(step)
        if outcome == INVALID:
            self._invalid += 1
            if self._invalid >= MOST_INVALID:
                self._give_up(f"{MOST_INVALID} trials at {self._rate:,.0f} records/s were invalid: {problem}")
            return
        self._invalid = 0
        # UNCLEAR counts as not sustained: the lag may grow without bound.
        sustained = outcome == BOUNDED
        if confirms:
            self._confirm(sustained)
        else:
            self._narrow(sustained)

    def _narrow(self, sustained: bool) -> None:
        if sustained:
            self._low = self._rate
        else:
            self._high = self._rate
        is_close = self._low and self._high and self._high <= self._low * (1 + self._precision)
        if self._low is not None and (self._rate >= self._most or is_close):
            self._try(self._low)
        elif self._low is not None and self._high is not None:
            self._rate = math.sqrt(self._low * self._high)
        else:
            self._brackets += 1
            self._rate = min(self._rate * BRACKET_FACTOR if sustained else self._rate / BRACKET_FACTOR, self._most)
            if self._brackets > MOST_BRACKET_STEPS or self._rate < LEAST_RATE:
                self._give_up(f"not even {self.path[-1].offered:,.0f} records/s were sustained")

    def _try(self, rate: float) -> None:
        self._candidate = self._rate = rate
        self._candidates += 1
        self._confirmed = 0

    def _confirm(self, sustained: bool) -> None:
        if sustained:
            self._confirmed += 1
            self._ended = self._confirmed >= self._confirmations
            return
        self._high = self._rate
        if self._candidates >= MOST_CANDIDATES:
            those = f"{self._candidates} candidates, the last {self._rate:,.0f} records/s"
            self._give_up(f"no rate could be confirmed: {those}, were sustained once and then were not")
        else:
            self._try(self._rate / (1 + self._precision))

    def _give_up(self, problem: str) -> None:
        self._ended = True
        self._candidate = None
        self.problem = problem
