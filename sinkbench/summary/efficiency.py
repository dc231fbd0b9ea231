"""What the limits of a run say of its cells: their share of the sink's limit, and the time that each stage takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sinkbench.analysis.intervals import ratio_by_block, spread_of
from sinkbench.analysis.limits import CONNECT, KAFKA, best, fastest, rates_by_block
from sinkbench.analysis.rates import usable_median, usable_rate
from sinkbench.results import CellSummary, Limit, Spread

__all__ = ["CONNECTOR", "SINK", "Stages", "stages_before", "stages_of", "with_limits"]

SINK, CONNECTOR = "sink", "connector"
"""The last two stages of each path."""

_US = 1e6


def with_limits(cells: Sequence[CellSummary], limits: Sequence[Limit]) -> list[CellSummary]:
    """The cells with their sink's limit and their efficiency.

    Where the limit was measured in blocks, the efficiency is the median of the ratios by block, on the log scale, with
    its interval; where it was measured once, it is the cell's median rate divided by that. A constant load, a re-scaled
    cell, one with a target of its own and one whose sink the plan sets otherwise have none.
    """
    return [cell.model_copy(update=_found(cell, fastest(limits, cell.sink))) for cell in cells]


def _found(cell: CellSummary, limit: Limit | None) -> dict[str, object]:
    # Under a constant load a cell stores what is offered, not what it could. A re-scaled cell's rate is that after the
    # change, which may be a short part of its drain.
    of_another = cell.mode == "sustain" or cell.rescale is not None
    if limit is None or not limit.records_per_second or of_another or _is_set_apart(cell):
        return {}
    rate = usable_rate(cell)
    known: dict[str, object] = {"limit_records_per_second": limit.records_per_second}
    if rate is None or not limit.in_blocks:
        share = None if rate is None else round(rate.median / limit.records_per_second, 4)
        return {**known, "efficiency": share, "efficiency_by_block": None}
    shares = _by_block(f"{limit.sink} by {limit.way}", rate.by_block(), rates_by_block(limit))
    share = None if shares is None else round(shares.median, 4)
    return {**known, "efficiency": share, "efficiency_by_block": shares}


def _is_set_apart(cell: CellSummary) -> bool:
    """Whether a cell writes to a sink that is set otherwise than that whose limit was measured."""
    return cell.target is not None or bool(cell.settings.get(cell.sink))


def _by_block(to: str, rates: Mapping[int, float], limits: Mapping[int, float]) -> Spread | None:
    """The ratios of the blocks that have both; None if there is none."""
    ratio = ratio_by_block(to, rates, limits)
    shares = spread_of({block: rate / limits[block] for block, rate in rates.items() if block in limits})
    if ratio is None or shares is None:
        return None
    # Back from the log scale, the median of equal values may lie beyond them.
    median = min(max(ratio.estimate, shares.low), shares.high)
    return shares.model_copy(update={"median": median, "interval": ratio.interval})


@dataclass(frozen=True)
class Stages:
    """How much of the time of one record each stage of a cell's path takes, in microseconds.

    Attributes:
        whole: one second divided by the cell's rate.
        before: `stages_before`.
        sink: one second divided by its limit.
        connector: what the others leave; None if they leave nothing, since they overlap.
    """

    whole: float
    before: Mapping[str, float]
    sink: float
    connector: float | None

    @property
    def most(self) -> str:
        """The name of the stage that takes most: one of `before`, `SINK` or `CONNECTOR`."""
        taken = {**self.before, SINK: self.sink, CONNECTOR: self.connector or 0.0}
        return max(taken, key=lambda name: taken[name])


def stages_of(cell: CellSummary, limits: Sequence[Limit]) -> Stages | None:
    """The stages of a cell; None without a rate or a sink's limit, under a constant load, if its tasks change, or if it
    has a target of its own or a sink that the plan sets otherwise, whose limit is not known."""
    rate = usable_median(cell)
    sink = best(limits, cell.sink)
    if not rate or sink is None or cell.mode == "sustain" or cell.rescale is not None or _is_set_apart(cell):
        return None
    before = stages_before(limits)
    rest = _US / rate - _US / sink - sum(before.values())
    return Stages(_US / rate, before, _US / sink, rest if rest > 0 else None)


def stages_before(limits: Sequence[Limit]) -> dict[str, float]:
    """Microseconds a record in Kafka and in Connect: one second divided by their limits, Connect's without Kafka's.

    They are one stage if Kafka alone is not faster.
    """
    kafka, connect = best(limits, KAFKA), best(limits, CONNECT)
    if connect is None:
        return {} if kafka is None else {KAFKA: _US / kafka}
    if kafka is None or kafka <= connect:
        return {f"{KAFKA} and {CONNECT}": _US / connect}
    return {KAFKA: _US / kafka, CONNECT: _US / connect - _US / kafka}
