"""How long the rest of a run takes, from what it has taken so far: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sinkbench.plan.plan import Plan

USUAL_SEARCH_STEPS = 6
"""Loads that a search usually offers before it confirms one."""
# Resetting, loading, starting, stopping and auditing, in addition to the drain itself.
OVERHEAD_SECONDS = 10.0
# Measuring a limit: its search takes some ten steps.
LIMIT_SECONDS = 40.0
BLOCK_LIMIT_SECONDS = 5.0
"""Measuring a limit in a block, with starting its clients and removing what they wrote."""
# A pilot is over after two of its lengths at the earliest.
PILOT_LENGTHS = 3


@dataclass(frozen=True)
class StepsLeft:
    """The steps that a run has still to take, with the one that begins.

    Attributes:
        limits: searches for a limit.
        in_blocks: limits that are measured in a block.
        warm_up_seconds: what is left for further rounds of pilots; a fresh stack uses it up.
    """

    pilots: int
    limits: int
    trials: int
    in_blocks: int = 0
    warm_up_seconds: float = 0.0

    @property
    def steps(self) -> int:
        """All of them."""
        return self.pilots + self.limits + self.trials + self.in_blocks


def trial_seconds(plan: Plan, taken: Sequence[float]) -> float:
    """How long a trial takes: the mean of those taken so far, in seconds."""
    load = plan.drain.window_seconds if plan.drains else plan.constant_load.seconds
    return sum(taken) / len(taken) if taken else load + OVERHEAD_SECONDS


def seconds_left(plan: Plan, left: StepsLeft, taken: Sequence[float]) -> float:
    """How long the steps that are left take, in seconds; `taken` is what each trial so far took."""
    pilot = PILOT_LENGTHS * plan.drain.pilot_seconds + OVERHEAD_SECONDS / 2
    pilots = max(left.pilots * pilot, left.warm_up_seconds)
    limits = left.limits * LIMIT_SECONDS + left.in_blocks * BLOCK_LIMIT_SECONDS
    return pilots + limits + left.trials * trial_seconds(plan, taken)
