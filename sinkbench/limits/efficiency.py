"""What the limits of a run say of its pipelines: the share of the sink's limit, and which stage eats the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sinkbench.results import CellSummary, Limit

__all__ = [
    "CONNECT",
    "CONNECTOR",
    "GENERATOR",
    "KAFKA",
    "SINK",
    "Stages",
    "best",
    "limit_line",
    "percent",
    "stages_before",
    "stages_of",
    "with_limits",
]

KAFKA, CONNECT, GENERATOR = "kafka", "connect", "generator"
"""The names under which the limits before the sink stand beside those of the sinks."""

SINK, CONNECTOR = "sink", "connector"
"""The last two stages of each path."""

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


@dataclass(frozen=True)
class Stages:
    """What each stage of a cell's path takes of the time of one record, in microseconds.

    Attributes:
        whole: one second divided by the cell's rate.
        before: Kafka and Connect, as far as they can be told apart; one second divided by their limits, Connect's
            without Kafka's.
        sink: one second divided by its limit.
        connector: what these leave, at work or waiting; None if they leave nothing, since they overlap.
    """

    whole: float
    before: Mapping[str, float]
    sink: float
    connector: float | None

    @property
    def most(self) -> str:
        """The stage that takes most: one of `before`, or `SINK` or `CONNECTOR`."""
        taken = {**self.before, SINK: self.sink, CONNECTOR: self.connector or 0.0}
        return max(taken, key=lambda name: taken[name])


def stages_of(cell: CellSummary, limits: Sequence[Limit]) -> Stages | None:
    """What the stages of a cell's path take; None if its rate or its sink's limit lacks, or its tasks change."""
    rate = None if cell.invalid or cell.records_per_second is None else cell.records_per_second.median
    sink = best(limits, cell.sink)
    if not rate or sink is None or cell.mode == "sustain" or cell.rescale is not None:
        return None
    before = stages_before(limits)
    rest = _US / rate - _US / sink - sum(before.values())
    return Stages(_US / rate, before, _US / sink, rest if rest > 0 else None)


def stages_before(limits: Sequence[Limit]) -> dict[str, float]:
    """The stages before the connector, in microseconds a record, as far as they can be told apart."""
    kafka, connect = best(limits, KAFKA), best(limits, CONNECT)
    if connect is None:
        return {} if kafka is None else {KAFKA: _US / kafka}
    if kafka is None or kafka <= connect:
        return {f"{KAFKA} and {CONNECT}": _US / connect}
    return {KAFKA: _US / kafka, CONNECT: _US / connect - _US / kafka}


def percent(share: float) -> str:
    """A share as a person reads it: 52%, 4.2%, 0.4%."""
    return f"{share:.0%}" if share >= 0.0995 else f"{share:.1%}"
