"""What a run lacks: cells in no answer, with what to do, and figures that were not measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sinkbench.analysis.rates import usable_rate
from sinkbench.metrics.names import cell_name
from sinkbench.report.parts import Lines, Part
from sinkbench.results import CellSummary, RunSummary
from sinkbench.tables.answers import missing_cells, unattributed_lines
from sinkbench.tables.stages import limit_line


def missing(summary: RunSummary) -> list[Part]:
    """The cells that may not be compared, by remedy, then what is unknown; empty if nothing is missing."""
    parts: list[Part] = []
    cells = missing_cells(summary)
    for advice in dict.fromkeys(cell.advice for cell in cells):
        shown = [cell for cell in cells if cell.advice == advice]
        parts.append(Lines([f"{cell.name}: {cell.why}" for cell in shown], bullets=True))
        if advice is not None:
            parts.append(Lines([f"To have {'it' if len(shown) == 1 else 'them'}: {advice}."]))
    if steps := unattributed_lines(summary):
        parts.append(Lines(steps, bullets=True))
    return [*parts, *([Lines(found, bullets=True)] if (found := _not_known(summary)) else [])]


def _not_known(summary: RunSummary) -> list[str]:
    unfinished = bool(summary.cells) and not summary.complete
    return [
        *([f"trials: the run is not finished; `sinkbench resume {summary.run}` goes on with it"] if unfinished else []),
        *_lines(summary, "whether the JVMs were warm", _warmth_unknown),
        *_lines(summary, "CPU time", _cpu_unknown),
        *(
            line
            for service in sorted({name for cell in summary.cells for name in cell.cpu_seconds_per_million})
            for line in _lines(summary, f"CPU time of {service}", partial(_one_unknown, service))
        ),
        *(limit_line(each) for each in summary.limits if each.records_per_second is None),
    ]


def _lines(summary: RunSummary, what: str, lacks: Callable[[CellSummary], bool]) -> list[str]:
    """That a figure is unknown, with the cells if others have it."""
    rated = [cell for cell in summary.cells if usable_rate(cell) is not None]
    found = [cell for cell in rated if lacks(cell)]
    return [f"{what}: not known{_of(found, rated, summary)}"] if found else []


def _of(found: Sequence[CellSummary], cells: Sequence[CellSummary], summary: RunSummary) -> str:
    return "" if len(found) == len(cells) else f" of {', '.join(cell_name(cell, summary) for cell in found)}"


def _warmth_unknown(cell: CellSummary) -> bool:
    return cell.mode == "drain" and cell.compiling_share is None


def _cpu_unknown(cell: CellSummary) -> bool:
    return not any(seconds is not None for seconds in cell.cpu_seconds_per_million.values())


def _one_unknown(service: str, cell: CellSummary) -> bool:
    """Whether one service could not be read, while others could."""
    return not _cpu_unknown(cell) and cell.cpu_seconds_per_million.get(service, 0.0) is None
