"""Estimates how long the rest of a run takes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sinkbench.plan.plan import Plan

USUAL_SEARCH_STEPS = 6
# Reset, load, start, stop and audit, in addition to the drain.
OVERHEAD_SECONDS = 10.0
# A search takes about ten steps.
LIMIT_SECONDS = 40.0
BLOCK_LIMIT_SECONDS = 5.0
"""Includes the start of its clients and the removal of their rows."""
# A pilot takes at least two of its lengths.
PILOT_LENGTHS = 3


@dataclass(frozen=True)
class StepsLeft:
    """The remaining steps of a run, with the current one; `warm_up_seconds` is for further rounds of pilots."""

    pilots: int
    limits: int
    trials: int
    in_blocks: int = 0
    warm_up_seconds: float = 0.0

    @property
    def steps(self) -> int:
        return self.pilots + self.limits + self.trials + self.in_blocks


def trial_seconds(plan: Plan, taken: Sequence[float]) -> float:
    load = plan.drain.window_seconds if plan.drains else plan.constant_load.seconds
    return sum(taken) / len(taken) if taken else load + OVERHEAD_SECONDS


def seconds_left(plan: Plan, left: StepsLeft, taken: Sequence[float]) -> float:
    """Duration of the remaining steps; `taken` is the duration of each trial so far."""
    pilot = PILOT_LENGTHS * plan.drain.pilot_seconds + OVERHEAD_SECONDS / 2
    pilots = max(left.pilots * pilot, left.warm_up_seconds)
    limits = left.limits * LIMIT_SECONDS + left.in_blocks * BLOCK_LIMIT_SECONDS
    return pilots + limits + left.trials * trial_seconds(plan, taken)
