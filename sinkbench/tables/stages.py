"""What limits a run: limits in words, and how pipelines scale with their tasks."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sinkbench.analysis.limits import CONNECT, GENERATOR, KAFKA
from sinkbench.analysis.words import formatted, span, whole
from sinkbench.results import Fit, Limit, LimitInBlock, Scaling
from sinkbench.tables.text import new_table


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


def scaling_table(scalings: Sequence[Scaling]) -> Table:
    """One row per number of tasks of each pipeline; without the fit if the data do not support the law."""
    table = new_table("scaling", "tasks", "measured\nrecords/s", "fitted\nrecords/s", "one more\nworker")
    for each in scalings:
        for place, point in enumerate(each.points):
            fitted, added = (point.fitted, point.added_worker) if each.supported else (None, None)
            name = "" if place else each.label
            row = [name, f"{point.tasks}", whole(point.measured), whole(fitted), formatted(added, "+,.0f")]
            table.add_row(*map(Text, row))
    return table


def scaling_line(scaling: Scaling) -> str:
    """The law's parameters and its peak, or why the data do not support a fit."""
    name = scaling.label
    if not scaling.supported or not (scaling.one_task and scaling.contention and scaling.coherency):
        return f"{name}: the data do not support a fit: {scaling.why}"
    numbers = (
        f"one task {_estimate(scaling.one_task, ',.0f')} records/s,"
        f" contention {_estimate(scaling.contention, '.2g')}, coherency {_estimate(scaling.coherency, '.2g')}"
    )
    if scaling.peak_tasks is not None:
        fewest = scaling.points[0].tasks
        if scaling.peak_tasks.estimate <= fewest:
            return f"{name}: {numbers}; the rate is highest at {fewest} tasks or fewer"
        return f"{name}: {numbers}; the rate peaks at {_estimate(scaling.peak_tasks, '.0f')} tasks"
    few = "" if scaling.coherency.interval else " (too few trials for an interval)"
    return f"{name}: {numbers}; no peak within the data{few}"


def _estimate(fit: Fit, form: str) -> str:
    found = fit.interval
    return f"{fit.estimate:{form}}" + (f" ({found.low:{form}} to {found.high:{form}})" if found else "")
