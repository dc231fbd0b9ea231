"""A cell's rate as a share of its sink's limit, and as a ratio to the slowest cell that does the same job."""

from collections.abc import Mapping

from sinkbench.analysis.intervals import ratio_by_block, ratio_of, spread_of
from sinkbench.analysis.limits import fastest, rates_by_block
from sinkbench.analysis.words import NOT_MEASURED, percent, share_span, times
from sinkbench.metrics.metric import Column, Fields, Metric, bounds, find, known, number, words
from sinkbench.metrics.queries import same_job
from sinkbench.metrics.rate import CELLS
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, RunSummary, Spread


def efficiency_lines(cell: CellSummary) -> list[str]:
    """The share of the sink's limit; for several blocks also its interval, or in brackets its range. What is surely
    above its limit shows that the limit is too low."""
    if cell.efficiency is None:
        return [NOT_MEASURED]
    shares = cell.efficiency_by_block
    ends = None if shares is None else shares.interval or shares
    if (cell.efficiency if ends is None else ends.low) > 1:
        return ["limit", "too low"]
    if shares is None or ends is None or len(shares.values) < 2:
        return [percent(cell.efficiency)]
    within = share_span(ends.low, ends.high)
    return [percent(cell.efficiency), within if shares.interval is not None else f"({within})"]


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


def _to_slowest(taken: Taken) -> Fields:
    # A constant load is stored at the rate at which it is offered.
    if not taken.median or taken.cell.before is not None or taken.cell.mode not in ("drain", "capacity"):
        return {}
    rated = [each for each in same_job(taken) if each.cell.before is None and each.median is not None]
    slowest = min(rated, key=lambda each: each.median or 0.0, default=taken)
    if slowest is taken or not slowest.median:
        return {}
    # A capacity is one search: its confirming rates are no sample of it.
    rates = [each.rates if taken.cell.mode == "drain" else {} for each in (taken, slowest)]
    return {"ratio": ratio_of(slowest.cell.key, rates[0], rates[1], taken.median / slowest.median)}


def _ratio(cell: CellSummary, run: RunSummary) -> str:
    if cell.ratio is not None:
        return f"x{times(cell.ratio.estimate)}"
    is_slowest = any(each.ratio is not None and each.ratio.to == cell.cell for each in run.cells)
    return f"x{times(1.0)}" if is_slowest else NOT_MEASURED


METRICS = (
    Metric(
        "Ratio",
        of_cell=_to_slowest,
        columns=[Column(CELLS, 40, "ratio", _ratio)],
        place=130,
        exports=[
            words("ratio_to", "ratio.to"),
            number("ratio", "ratio.estimate"),
            *bounds("ratio", lambda cell, _: cell.ratio),
        ],
    ),
    Metric(
        "Limit", place=250, exports=[number("limit_records_per_second"), *bounds("limit_records_per_second", _limit)]
    ),
    Metric(
        "Efficiency",
        of_cell=_of_cell,
        columns=[
            Column(CELLS, 50, "of\nlimit", lambda cell, _: "\n".join(efficiency_lines(cell)), shown=known("efficiency"))
        ],
        place=260,
        exports=[number("efficiency"), *bounds("efficiency", lambda cell, _: cell.efficiency_by_block)],
    ),
)
