"""What the limits of a run say of its pipelines: the share of the sink's limit, and which stage eats the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sinkbench.results import CellSummary, Limit, RunSummary

__all__ = ["CONNECT", "GENERATOR", "KAFKA", "best", "limit_line", "limit_lines", "percent", "stage_line", "with_limits"]

KAFKA, CONNECT, GENERATOR = "kafka", "connect", "generator"
"""The names under which the limits before the sink stand beside those of the sinks."""

_UNITS = {"elasticsearch": "documents"}
_US = 1e6


def best(limits: Iterable[Limit], sink: str) -> float | None:
    """The records per second of a sink's fastest way, or of `KAFKA` or `CONNECT`; None if none was measured."""
    rates = (limit.records_per_second for limit in limits if limit.sink == sink)
    return max((rate for rate in rates if rate), default=None)


def with_limits(cells: Sequence[CellSummary], limits: Sequence[Limit]) -> list[CellSummary]:
    """The cells with their sink's limit and their efficiency, the median rate divided by it; None where one lacks."""
    return [cell.model_copy(update=_found(cell, best(limits, cell.sink))) for cell in cells]


def _found(cell: CellSummary, limit: float | None) -> dict[str, float | None]:
    # What is stored of a load is no share of what could be.
    if limit is None or cell.mode == "sustain":
        return {}
    rate = None if cell.invalid or cell.records_per_second is None else cell.records_per_second.median
    return {"limit_records_per_second": limit, "efficiency": None if rate is None else round(rate / limit, 4)}


def limit_lines(summary: RunSummary) -> list[str]:
    """The limits of a run, a line each, and what they say of each cell; nothing if none was measured."""
    if not summary.limits:
        return []
    stages = (stage_line(cell, summary.limits) for cell in summary.cells)
    return [*map(limit_line, summary.limits), *(line for line in stages if line is not None)]


def limit_line(limit: Limit) -> str:
    """A limit in words: `limit of postgres: 163,000 records/s by COPY of 1,024 rows over 2 connections`."""
    if limit.records_per_second is None:
        return f"limit of {limit.sink} by {limit.way}: not measured: {limit.note or 'no reason was given'}"
    line = f"limit of {limit.sink}: {limit.records_per_second:,.0f} records/s by"
    if limit.sink == GENERATOR:
        return f"{line} {limit.way} alone"
    if limit.sink == KAFKA:
        return f"{line} a plain consumer group of {limit.connections}"
    if limit.sink == CONNECT:
        return f"{line} {limit.connections} tasks of {limit.way} that drop every record"
    connections = "1 connection" if limit.connections == 1 else f"{limit.connections} connections"
    return f"{line} {limit.way} of {limit.batch:,} {_UNITS.get(limit.sink, 'rows')} over {connections}"


def stage_line(cell: CellSummary, limits: Sequence[Limit]) -> str | None:
    """What each stage of a cell's path takes of the time of one record, and which takes most.

    A stage's time is what it takes alone: one second divided by its limit; Connect's without Kafka's. What the stages
    leave of the pipeline's own time a record is the connector's, at work or waiting. None if the sink's limit or the
    cell's rate lacks.
    """
    rate = None if cell.invalid or cell.records_per_second is None else cell.records_per_second.median
    sink = best(limits, cell.sink)
    if not rate or sink is None or cell.mode == "sustain":
        return None
    whole = _US / rate
    stages = [*_before(best(limits, KAFKA), best(limits, CONNECT)), (cell.sink, _US / sink)]
    rest = whole - sum(us for _, us in stages)
    if rest > 0:
        stages.append(("the connector", rest))
    listed = ", ".join(f"{name} {_in_us(us)} ({percent(us / whole)})" for name, us in stages)
    most = max(stages, key=lambda stage: stage[1])[0]
    share = f"{cell.cell}: {percent(rate / sink)} of {cell.sink}'s limit"
    line = f"{share}; of {_in_us(whole)} a record {listed}: {most} takes most"
    return line if rest > 0 else f"{line}; the stages overlap"


def percent(share: float) -> str:
    """A share as a person reads it: 52%, 4.2%, 0.4%."""
    return f"{share:.0%}" if share >= 0.0995 else f"{share:.1%}"


def _in_us(microseconds: float) -> str:
    return f"{microseconds:,.0f} us" if microseconds >= 9.95 else f"{microseconds:.1f} us"


def _before(kafka: float | None, connect: float | None) -> list[tuple[str, float]]:
    """The stages before the connector, in microseconds a record, as far as they can be told apart."""
    if connect is None:
        return [] if kafka is None else [("kafka", _US / kafka)]
    if kafka is None or kafka <= connect:
        return [("kafka and connect", _US / connect)]
    return [("kafka", _US / kafka), ("connect", _US / connect - _US / kafka)]
