"""The limits of a run, a cell's share of its sink's limit, and the time of each stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sinkbench.analysis.intervals import ratio_by_block, spread_of
from sinkbench.analysis.limits import CONNECT, KAFKA, best, fastest, rates_by_block
from sinkbench.analysis.rates import usable_median
from sinkbench.metrics.bound import bound_of
from sinkbench.metrics.format import NOT_MEASURED, percent, share_span
from sinkbench.metrics.metric import ROOMY, Column, Export, Fields, Metric, bounds, find, number
from sinkbench.metrics.rate import CELLS
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, Limit, RunSummary, Spread

SINK, CONNECTOR = "sink", "connector"
_US = 1e6


@dataclass(frozen=True)
class Stages:
    """The time of one record in each stage, in microseconds; `connector` is the remainder, None if nothing remains."""

    whole: float
    before: Mapping[str, float]
    sink: float
    connector: float | None

    @property
    def most(self) -> str:
        """The name of the longest stage: one of `before`, `SINK` or `CONNECTOR`."""
        taken = {**self.before, SINK: self.sink, CONNECTOR: self.connector or 0.0}
        return max(taken, key=lambda name: taken[name])


def stages_of(cell: CellSummary, limits: Sequence[Limit]) -> Stages | None:
    """The stages of a cell; None without a rate or a sink's limit, under a constant load, if its tasks change, or if
    its target or sink settings differ from those of the measured limit."""
    rate = usable_median(cell)
    sink = best(limits, cell.sink)
    other = cell.target is not None or cell.settings.get(cell.sink)
    if not rate or sink is None or cell.mode == "sustain" or cell.rescale is not None or other:
        return None
    before = stages_before(limits)
    rest = _US / rate - _US / sink - sum(before.values())
    return Stages(_US / rate, before, _US / sink, rest if rest > 0 else None)


def stages_before(limits: Sequence[Limit]) -> dict[str, float]:
    """Microseconds per record in Kafka and Connect, from their limits; one stage if Kafka alone is not faster."""
    kafka, connect = best(limits, KAFKA), best(limits, CONNECT)
    if connect is None:
        return {} if kafka is None else {KAFKA: _US / kafka}
    if kafka is None or kafka <= connect:
        return {f"{KAFKA} and {CONNECT}": _US / connect}
    return {KAFKA: _US / kafka, CONNECT: _US / connect - _US / kafka}


def efficiency_and_spread(cell: CellSummary) -> list[str]:
    """The share of the sink's limit; for several blocks also its interval, or in brackets its range."""
    if cell.efficiency is None:
        return [NOT_MEASURED]
    shares = cell.efficiency_by_block
    if shares is None or len(shares.values) < 2:
        return [percent(cell.efficiency)]
    if shares.interval is not None:
        return [percent(cell.efficiency), share_span(shares.interval.low, shares.interval.high)]
    return [percent(cell.efficiency), f"({share_span(shares.low, shares.high)})"]


def _of_cell(taken: Taken) -> Fields:
    """The sink's limit, and the cell's share of it by block if possible. None for a constant load, a re-scaled cell,
    and a target or settings that differ from the measured ones."""
    cell, limit = taken.cell, fastest(taken.limits, taken.cell.sink)
    if limit is None or not limit.records_per_second or cell.mode == "sustain" or cell.before is not None:
        return {}
    if cell.target is not None or cell.settings.get(cell.sink):
        return {}
    known = {"limit_records_per_second": limit.records_per_second}
    if taken.median is None:
        return known
    if not limit.in_blocks:
        return {**known, "efficiency": round(taken.median / limit.records_per_second, 4)}
    shares = _by_block(f"{limit.sink} by {limit.way}", taken.rates, rates_by_block(limit))
    return {**known, "efficiency": None if shares is None else round(shares.median, 4), "efficiency_by_block": shares}


def _by_block(to: str, rates: Mapping[int, float], limits: Mapping[int, float]) -> Spread | None:
    ratio = ratio_by_block(to, rates, limits)
    shares = spread_of({block: rate / limits[block] for block, rate in rates.items() if block in limits})
    if ratio is None or shares is None:
        return None
    # Rounding on the log scale can put the median of equal values outside their range.
    median = min(max(ratio.estimate, shares.low), shares.high)
    return shares.model_copy(update={"median": median, "interval": ratio.interval})


def _limit(cell: CellSummary, run: RunSummary) -> object:
    return None if cell.limit_records_per_second is None else find(fastest(run.limits, cell.sink), "spread")


METRICS = (
    Metric(
        "Limit",
        "The highest rate at which one stage of the path works alone, measured in the same run.",
        place=250,
        exports=[number("limit_records_per_second"), *bounds("limit_records_per_second", _limit)],
    ),
    Metric(
        "Efficiency",
        "A cell's rate divided by the limit of its sink.",
        of_cell=_of_cell,
        columns=[
            Column(
                CELLS,
                50,
                "of\nlimit",
                lambda cell, _: "\n".join(efficiency_and_spread(cell)),
                shown=lambda view: view.width >= ROOMY and view.any(lambda cell: cell.efficiency is not None),
            )
        ],
        place=260,
        exports=[number("efficiency"), *bounds("efficiency", lambda cell, _: cell.efficiency_by_block)],
    ),
    Metric(
        "CPU bound",
        "The share of its sink's limit that a pipeline cannot exceed with the CPU time that it takes.",
        heads=["CPU bounds it to", "left to gain"],
        place=280,
        exports=[Export("cpu_bound", "DOUBLE", lambda cell, run: find(bound_of(cell, run), "share"))],
    ),
    Metric(
        "Time of one record",
        "How much of the time of one record each stage of its path takes, in microseconds.",
        heads=["all us", "kafka us", "connect us", "kafka, connect", "sink us", "connector us", "most is of the"],
    ),
)
