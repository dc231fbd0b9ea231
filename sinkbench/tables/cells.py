"""A run as a table of its cells, with answers and remarks. Text is ASCII except for names chosen by users."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from sinkbench.analysis.intervals import FEWEST_BLOCKS
from sinkbench.analysis.rates import usable_rate
from sinkbench.bottleneck.verdict import NOT_IDENTIFIED
from sinkbench.errors import ReasonCode
from sinkbench.metrics import WHERE
from sinkbench.metrics.changes import CHANGES
from sinkbench.metrics.cost import COSTS
from sinkbench.metrics.foreign import much_foreign
from sinkbench.metrics.format import percent
from sinkbench.metrics.memory import RESOURCES
from sinkbench.metrics.metric import ROOMY
from sinkbench.metrics.names import cell_name
from sinkbench.metrics.pool import POOLS
from sinkbench.metrics.queries import READS
from sinkbench.metrics.rate import at_least_in_words, has_interval
from sinkbench.metrics.recovery import RECOVERIES, STATUS
from sinkbench.metrics.rescale import RESCALES
from sinkbench.results import Bottleneck, CellSummary, RunSummary
from sinkbench.tables.answers import answer_lines
from sinkbench.tables.bounds import bound_lines
from sinkbench.tables.faults import fault_line, fault_lines, is_faults, matrix_table
from sinkbench.tables.loads import is_load, load_lines
from sinkbench.tables.percell import cell_table, cells_table, durability_table, load_table
from sinkbench.tables.prices import price_lines
from sinkbench.tables.queries import query_lines, query_table
from sinkbench.tables.records import record_lines
from sinkbench.tables.scaling import scaling_line, scaling_table
from sinkbench.tables.stages import limit_line, stage_table
from sinkbench.tables.text import plain_text, printed

# Messages of services, which have no common form.
_OF_MANY_KINDS = {ReasonCode.UNKNOWN, ReasonCode.SERVICE_ERROR, ReasonCode.CONNECT_REFUSED}
_PIPE_WIDTH = 140


def show(summary: RunSummary, file: TextIO | None = None) -> None:
    """Prints a run: heading, tables, answers and remarks; in the terminal's width, or in 140 columns without colour."""
    out = sys.stdout if file is None else file
    console = Console(file=out)
    text = printed(_parts(summary, console.width), console) if out.isatty() else render(summary)
    # A name that the output's encoding lacks must not end the command that measured it.
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(text.encode(encoding, "replace").decode(encoding))


def render(summary: RunSummary, width: int = _PIPE_WIDTH) -> str:
    """What `show` prints into a pipe, with tables of at most `width` columns."""
    return plain_text(_parts(summary, width), width)


def heading(summary: RunSummary) -> list[str]:
    """The lines above the table: the run, its plan and its machine."""
    plan, found = summary.plan, summary.environment
    machine = machine_in_words(found)
    parts = [
        f"plan {plan.name}",
        f"trials {plan.trials}" if plan.trials is not None else "",
        f"seed {plan.seed}" if plan.seed is not None else "",
        f"stack {found['stack']}" if found.get("stack") else "",
        f"machine {machine}" if machine else "",
        resumed_in_words(summary),
    ]
    unfinished = "" if summary.complete else " (not finished)"
    return [f"run {summary.run}{unfinished}", ", ".join(filter(None, parts))]


def remarks(summary: RunSummary, width: int = _PIPE_WIDTH) -> list[str]:
    """The lines below the table: faults and notes of each cell in full."""
    lines = []
    for cell in summary.cells:
        name = cell_name(cell, summary)
        lines += [f"{name}: {each}" for each in _wrong(cell)]
        if cell.at_least is not None:
            least = at_least_in_words(cell)
            lines.append(f"{name}: {f'{least} records/s, ' if least else ''}{cell.at_least.text}")
        if cell.bottleneck is not None:
            lines.append(_limited(name, cell.bottleneck))
        lines += [f"* {name}: {note}" for note in cell.notes]
        if (foreign := much_foreign(cell, summary)) is not None:
            lines.append(
                f"{name}: up to {foreign:.1f} cores were busy with what is no part of the stack"
                f" ({cell.stolen_cores or 0.0:.1f} of them stolen by a hypervisor): compare runs of a quieter machine"
            )
    lines += record_lines(summary)
    if is_load(summary):
        return lines
    rates = [rate for cell in summary.cells if (rate := usable_rate(cell)) is not None]
    if any(rate.interval is None and len(rate.values) > 1 for rate in rates):
        where = "In brackets" if any(map(has_interval, summary.cells)) else "Next to a rate"
        lines.append(f"{where} are its lowest and highest trial: too few trials for an interval.")
    shares = [each for cell in summary.cells if (each := cell.efficiency_by_block) is not None]
    if any(each.interval is None for each in shares):
        fewest = min(len(each.values) for each in shares)
        blocks = f"{fewest} {'block' if fewest == 1 else 'blocks'}"
        few = f"fewer than {FEWEST_BLOCKS} blocks have both rates"
        lines.append(f"A share of a limit has no interval where {few} (here {blocks}): in brackets lowest and highest.")
    overhead = [cell.monitoring_overhead_cores for cell in summary.cells if cell.monitoring_overhead_cores is not None]
    if overhead:
        lines.append(f"Monitoring overhead: at most {percent(max(overhead))} of one core.")
    if width < ROOMY:
        lines.append(f"Records per write and CPU seconds are shown from {ROOMY} columns on.")
    return lines


def machine_in_words(environment: Mapping[str, JsonValue]) -> str:
    model, cores = environment.get("cpu_model"), environment.get("cpu_count")
    return ", ".join([*([str(model)] if model else []), *([f"{cores} cores"] if cores else [])])


def resumed_in_words(summary: RunSummary) -> str:
    """As `resumed 2026-11-21T03:48:00Z`; empty if the run was not interrupted."""
    return f"resumed {' and '.join(summary.resumed)}" if summary.resumed else ""


def _parts(summary: RunSummary, width: int) -> Iterator[str | Table]:
    yield from (*heading(summary), "")
    for block in _blocks(summary, width):
        yield from (*block, "") if block else ()
    if is_faults(summary):
        yield from (fault_line(summary), *fault_lines(summary))
    yield from answer_lines(summary)
    yield from load_lines(summary) if is_load(summary) else []
    yield from price_lines(summary)
    yield from query_lines(summary)
    yield from (*remarks(summary, width), *map(limit_line, summary.limits), *bound_lines(summary), WHERE)


def _blocks(summary: RunSummary, width: int) -> Iterator[Sequence[str | Table]]:
    """The tables, and the lines between them; blocks without data are empty."""
    resources: Sequence[Table | None] = ()
    if is_faults(summary):
        first: Sequence[Table | None] = (
            matrix_table(summary),
            *(cell_table(key, summary) for key in (RECOVERIES, STATUS)),
        )
    else:
        first = (load_table(summary, width) if is_load(summary) else cells_table(summary, width),)
        resources = (cell_table(RESOURCES, summary, width), cell_table(COSTS, summary))
    law = scaling_table(summary.scaling) if summary.scaling else None
    yield from ([table] for table in (*first, cell_table(RESCALES, summary), law) if table is not None)
    yield [*map(scaling_line, summary.scaling)]
    of_load = (cell_table(key, summary) for key in (READS, CHANGES, POOLS))
    rest = (stage_table(summary), *of_load, query_table(summary), durability_table(summary), *resources)
    yield from ([table] for table in rest if table is not None)


def _wrong(cell: CellSummary) -> list[str]:
    """The verdict of a failed cell, then the first of each kind of reason not in the verdict."""
    if cell.passed:
        return []
    # The verdict has the first reason, or why tasks failed.
    left = [reason for reason in cell.reasons if reason.code != ReasonCode.TASKS_FAILED]
    left = left if cell.failed_tasks else left[1:]
    kinds: dict[str, list[str]] = {}
    for reason in left:
        # A reason without a code is identified by its text.
        kinds.setdefault(reason.text if reason.code in _OF_MANY_KINDS else reason.code, []).append(reason.text)
    more = {first: len(others) for first, *others in kinds.values()}
    return [cell.verdict, *(f"{text} (and {count} more like it)" if count else text for text, count in more.items())]


def _limited(name: str, found: Bottleneck) -> str:
    if found.cause == NOT_IDENTIFIED:
        return f"{name}: what limits it is not identified ({found.evidence})"
    return f"{name}: limited by {found.component}, {found.cause}: {found.evidence}"
