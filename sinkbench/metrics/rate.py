"""The rate of a cell, its uncertainty, and whether it is quotable."""

from sinkbench.analysis.intervals import interval_of_median
from sinkbench.analysis.rates import most, usable_rate
from sinkbench.analysis.words import NOT_MEASURED, span, whole
from sinkbench.metrics.metric import Column, Export, Fields, Metric, bounds, count, find, number, over, words
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, RatePerSecond, RunSummary

CELLS = "cells"


def at_least_in_words(cell: CellSummary) -> str | None:
    """As `at least 1,308`; None for a cell that is invalid or whose rate is quotable."""
    if cell.at_least is None or cell.invalid or "records_per_second" not in cell.at_least.figures:
        return None
    return f"at least {whole(cell.at_least.figures['records_per_second'])}"


def rate_and_spread(cell: CellSummary, in_brackets: bool) -> tuple[str, str]:
    """The rate, and its interval or its range; the latter in brackets on request."""
    if (rate := usable_rate(cell)) is None:
        return at_least_in_words(cell) or NOT_MEASURED, NOT_MEASURED
    if len(rate.values) == 1:
        return whole(rate.median), NOT_MEASURED
    if rate.interval is not None:
        return whole(rate.median), span(rate.interval.low, rate.interval.high)
    spread = span(rate.low, rate.high)
    return whole(rate.median), f"({spread})" if in_brackets else spread


def _has_intervals(run: RunSummary) -> bool:
    return any(find(usable_rate(cell), "interval") is not None for cell in run.cells)


def _of_cell(taken: Taken) -> Fields:
    known = [trial for trial in taken.used if trial.records_per_second is not None]
    rates = [trial.records_per_second or 0.0 for trial in known]
    fields = {"fastest_trial": most(trial.records_per_second for trial in taken.all_trials)}
    if taken.median is None:
        return fields
    rate = RatePerSecond(
        median=taken.median,
        low=min(rates),
        high=max(rates),
        values=rates,
        blocks=[trial.block for trial in known],
        interval=interval_of_median(rates) if taken.cell.mode == "drain" else None,
    )
    return {**fields, "records_per_second": rate}


def _export(name: str, path: str) -> Export:
    return Export(name, "DOUBLE", lambda cell, _: find(usable_rate(cell), path))


METRICS = (
    Metric(
        "Records per second",
        of_cell=_of_cell,
        columns=[Column(CELLS, 20, "records/s", lambda cell, run: rate_and_spread(cell, _has_intervals(run))[0])],
        heads=["measured records/s", "A records/s", "B records/s"],
        place=40,
        exports=[
            _export("records_per_second", "median"),
            _export("records_per_second_lowest", "low"),
            _export("records_per_second_highest", "high"),
            number("fastest_trial"),
            *bounds("records_per_second", lambda cell, _: usable_rate(cell)),
        ],
    ),
    Metric(
        "Records per second",
        of_cell=over(most, "read_ahead_records", of="valid"),
        exports=[count("read_ahead_records")],
        place=145,
    ),
    Metric(
        "Warm and steady",
        of_cell=lambda taken: {"at_least": taken.early},
        place=50,
        exports=[
            number("records_per_second_at_least", "at_least.figures.records_per_second"),
            words("not_warm_or_steady", "at_least.text"),
        ],
    ),
    Metric(
        "Interval",
        columns=[
            Column(
                CELLS,
                30,
                lambda run: "95 %\ninterval" if _has_intervals(run) else "min-max",
                lambda cell, run: rate_and_spread(cell, _has_intervals(run))[1],
            )
        ],
        heads=["95 % interval", "min-max"],
    ),
)
