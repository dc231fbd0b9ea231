"""The offered constant load, how much of it is stored, lag and latency, and the capacity found by a search."""

from collections.abc import Sequence
from statistics import mean

from sinkbench.analysis.latency import BOUNDED, GROWING, UNCLEAR, merged, pooled
from sinkbench.analysis.rates import median_known, usable_rate
from sinkbench.analysis.words import milliseconds, percent, whole
from sinkbench.metrics.connections import LOADS
from sinkbench.metrics.metric import Column, Fields, Metric, column, known, number, over, words
from sinkbench.metrics.rate import at_least_in_words
from sinkbench.metrics.taken import Taken
from sinkbench.metrics.tasks import tasks_per_worker
from sinkbench.results import CellSummary, Lag, RunSummary, TrialRecord


def lag_over(trials: Sequence[TrialRecord]) -> Lag | None:
    """The lag with the worst verdict, among these the fastest growing one; None without any. Trials of which none grows
    for certain are judged together if one alone cannot tell."""
    ranks, lags = {GROWING: 2, UNCLEAR: 1, BOUNDED: 0}, [trial.lag for trial in trials if trial.lag is not None]
    found = max(lags, key=lambda lag: (ranks[lag.verdict], lag.growth_per_second or 0.0), default=None)
    if found is None or found.verdict != UNCLEAR:
        return found
    return pooled(lags, trials[0].offered_records_per_second or 0.0) or found


def _offered(taken: Taken) -> Fields:
    told = taken.cell.offered if taken.capacity is None else taken.capacity
    if taken.cell.of_capacity is not None:
        told = median_known(trial.offered_records_per_second for trial in taken.trials)
    return {"offered_records_per_second": told, "search": [] if taken.search is None else taken.search.path}


def _is_capacity(cell: CellSummary) -> bool:
    return cell.mode == "capacity"


def _offered_rate(cell: CellSummary, _: RunSummary) -> str:
    return "" if _is_capacity(cell) else whole(cell.offered_records_per_second)


def _capacity(cell: CellSummary, _: RunSummary) -> str:
    return (at_least_in_words(cell) or whole(cell.offered_records_per_second)) if _is_capacity(cell) else ""


def _stored(cell: CellSummary, _: RunSummary) -> str:
    rate = usable_rate(cell)
    return whole(None if rate is None else mean(rate.values))


_HEADS = {"p50": "latency\np50 ms", "p95": "p95\nms", "p99": "p99\nms", "p999": "p99.9\nms"}
METRICS = (
    Metric(
        "Offered rate",
        of_cell=_offered,
        columns=[
            Column(LOADS, 10, "tasks\n(per\nworker)", tasks_per_worker),
            Column(LOADS, 12, "further\ngroups", lambda cell, _: str(cell.readers or 0), shown=known("readers")),
            Column(
                LOADS, 20, "offered\nrecords/s", _offered_rate, shown=lambda run: not all(map(_is_capacity, run.cells))
            ),
        ],
        place=30,
        exports=[number("offered_records_per_second"), number("readers")],
    ),
    Metric("Stored rate", columns=[Column(LOADS, 30, "stored\nrecords/s", _stored)]),
    Metric(
        "Lag",
        of_cell=lambda taken: {"lag": lag_over(taken.valid)},
        columns=[
            column(LOADS, 40, "lag\ngrows/s", "lag.growth_per_second"),
            column(LOADS, 41, "most\nlag", "lag.largest"),
        ],
        place=220,
        exports=[words("lag_verdict", "lag.verdict"), number("lag_growth_per_second", "lag.growth_per_second")],
    ),
    Metric(
        "Latency",
        of_cell=over(merged, "latency_ms", of="valid"),
        columns=[
            column(LOADS, 50 + place, head, f"latency_ms.{name}", milliseconds)
            for place, (name, head) in enumerate(_HEADS.items())
        ],
        place=230,
        exports=[number(f"latency_{name}_ms", f"latency_ms.{name}") for name in _HEADS],
    ),
    Metric(
        "Time until found",
        of_cell=over(merged, "searchable_ms", of="valid"),
        columns=[column(LOADS, 60, "found\np99 ms", "searchable_ms.p99", milliseconds, always=False)],
        place=240,
        exports=[number("searchable_p99_ms", "searchable_ms.p99")],
    ),
    Metric(
        "Capacity",
        columns=[
            Column(LOADS, 20, "capacity\nrecords/s", _capacity, shown=lambda run: any(map(_is_capacity, run.cells))),
            column(
                LOADS, 25, "of its\ncapacity", "of_capacity", lambda of: "" if of is None else percent(of), always=False
            ),
        ],
    ),
)
