"""The limits of a run in words."""

from __future__ import annotations

from sinkbench.analysis.limits import CONNECT, GENERATOR, KAFKA
from sinkbench.metrics.format import span, whole
from sinkbench.results import Limit, LimitInBlock


def limit_line(limit: Limit) -> str:
    """A limit in words: `limit of postgres: 163,000 records/s by COPY of 1,024 rows over 2 connections`."""
    if limit.records_per_second is None:
        return f"limit of {limit.sink} by {limit.way}: not measured: {limit.note or 'no reason was given'}"
    line = f"limit of {limit.sink}: {whole(limit.records_per_second)} records/s{_spread(limit)} by"
    if limit.sink == GENERATOR:
        return f"{line} {limit.way} alone"
    if limit.sink == KAFKA:
        return f"{line} a plain consumer group of {limit.connections}"
    if limit.sink == CONNECT:
        return f"{line} {limit.connections} tasks of {limit.way} that drop every record"
    connections = "1 connection" if limit.connections == 1 else f"{limit.connections} connections"
    return f"{line} {limit.way} of {limit.batch:,} records over {connections}{_missing(limit)}"


def limit_in_block_line(limit: Limit, found: LimitInBlock) -> str:
    what = f"limit of {limit.sink} by {limit.way}, block {found.block}"
    if found.records_per_second is None:
        return f"{what}: not measured: {found.problem or 'no reason was given'}"
    return f"{what}: {whole(found.records_per_second)} records/s"


def _spread(limit: Limit) -> str:
    """The interval of a limit's rate; else its range and the number of blocks; or empty."""
    spread = limit.spread
    if spread is None or len(spread.values) < 2:
        return ""
    if spread.interval is not None:
        return f" ({span(spread.interval.low, spread.interval.high)}, {len(spread.values)} blocks, 95 % interval)"
    return f" ({span(spread.low, spread.high)}, the lowest and highest of {len(spread.values)} blocks)"


def _missing(limit: Limit) -> str:
    """In how many blocks a limit could not be measured, with the first reason."""
    problems = [each.problem for each in limit.in_blocks if each.records_per_second is None]
    if not problems:
        return ""
    return f"; not measured in {len(problems)} of {len(limit.in_blocks)} blocks: {problems[0] or 'no reason was given'}"
