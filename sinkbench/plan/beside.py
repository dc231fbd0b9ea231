"""The limits beside the trials: which of them are measured in each block, and at which place of it. Pure decisions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan
from sinkbench.results import Limit

__all__ = ["LimitOf", "are_in_blocks", "limits_in_blocks", "with_limits_beside"]


class LimitOf(NamedTuple):
    """A limit of a run, by the names that its `Limit` has."""

    sink: str
    way: str


def are_in_blocks(plan: Plan) -> bool:
    """Whether limits are measured in each block: with several blocks, and rates that something is to be divided by.

    Under a constant load a cell stores what is offered, so no efficiency is made of it; a search has no blocks.
    """
    return plan.limits and plan.drains and plan.most_blocks > 1


def limits_in_blocks(plan: Plan, limits: Iterable[Limit]) -> list[LimitOf]:
    """The limits that are measured in each block, in their order: those of sinks whose search has settled the way.

    Kafka's and Connect's are not: no efficiency is made of them, and each takes a loaded topic of its own. They have no
    batch.
    """
    if not are_in_blocks(plan):
        return []
    return [LimitOf(limit.sink, limit.way) for limit in limits if limit.batch and limit.connections]


def with_limits_beside(cells: Sequence[Cell], limits: Sequence[LimitOf], seed: str) -> list[Cell | LimitOf]:
    """The cells of a block in their order, with each limit at a place among them that is drawn from `seed`.

    The cells' own order does not depend on the limits, so a run has the same one with and without them.
    """
    draw = random.Random(seed)
    steps: list[Cell | LimitOf] = list(cells)
    for limit in limits:
        steps.insert(draw.randint(0, len(steps)), limit)
    return steps
