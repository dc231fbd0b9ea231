"""Whether a run meets the thresholds of its plan. What is not measured or not final neither passes nor fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sinkbench.analysis.rates import usable_rate
from sinkbench.errors import EXIT_CHECK_FAILED, EXIT_DONE, EXIT_INCONCLUSIVE
from sinkbench.plan.sections import Bound
from sinkbench.results import CellSummary, RunSummary, Spread

_SIGNS = {True: "✓", False: "✗", None: "?"}


def _latency(name: str) -> Callable[[CellSummary], float | None]:
    return lambda cell: None if cell.latency_ms is None else float(getattr(cell.latency_ms, name))


def _median(spread: Spread | None, unit: float = 1.0) -> float | None:
    return None if spread is None else spread.median / unit


def _rate(cell: CellSummary) -> float | None:
    rate = usable_rate(cell)
    return None if rate is None else rate.median


def _connections(cell: CellSummary) -> float | None:
    seen = cell.connections
    return seen.server_peak if seen.server_peak is not None else seen.clients_peak


_COUNTS: dict[str, Callable[[CellSummary], float | None]] = {
    "lost": lambda cell: None if cell.audit is None else cell.audit.lost,
    "duplicates": lambda cell: None if cell.audit is None else cell.audit.duplicates,
}
"""Figures over all trials, which final or not only grow."""
VALUES: dict[str, Callable[[CellSummary], float | None]] = {
    "records_per_second": _rate,
    "efficiency": lambda cell: cell.efficiency,
    "p50_ms": _latency("p50"),
    "p95_ms": _latency("p95"),
    "p99_ms": _latency("p99"),
    "connections": _connections,
    "cpu_seconds_per_million": lambda cell: _median(cell.total_cpu_seconds_per_million),
    "memory_mb": lambda cell: _median(cell.total_peak_memory_bytes, 1e6),
    "disk_bytes_per_record": lambda cell: _median(cell.disk_bytes_per_record),
    "cost_per_million": lambda cell: None if cell.cost is None else cell.cost.per_million,
    **_COUNTS,
}


@dataclass(frozen=True)
class Outcome:
    """A threshold of a cell; `passed` is None if that is not decided, and `why` says what is missing then."""

    label: str
    cell: str
    figure: str
    bound: str
    value: float | None
    passed: bool | None
    why: str = ""

    @property
    def line(self) -> str:
        """As `✗ postgres/jdbc@3x1: p99_ms 1,204 is not < 1000`."""
        found = f"{_SIGNS[self.passed]} {self.cell}: {self.figure}" + (
            "" if self.value is None else f" {_number(self.value)}"
        )
        if self.passed is None:
            return f"{found} (asked {self.bound}): {self.why}"
        return f"{found} ({self.bound})" if self.passed else f"{found} is not {self.bound}"


def outcomes(summary: RunSummary) -> list[Outcome]:
    """What came of each threshold in each cell, in the order of the plan's pipelines."""
    found = []
    for label, bounds in (summary.thresholds or {}).items():
        cells = [cell for cell in summary.cells if cell.label == label]
        for figure, bound in bounds.items():
            found += [_outcome(summary, cell, figure, bound) for cell in cells]
            if not cells:
                found.append(Outcome(label, label, figure, bound, None, None, "no trial was taken"))
    return found


def exit_code(found: Sequence[Outcome]) -> int:
    """1 if a threshold fails, else 3 if one is not decided."""
    verdicts = {outcome.passed for outcome in found}
    return EXIT_CHECK_FAILED if False in verdicts else EXIT_INCONCLUSIVE if None in verdicts else EXIT_DONE


def threshold_lines(summary: RunSummary) -> list[str]:
    """A line for each threshold below their count; empty without any."""
    found = outcomes(summary)
    verdicts = [outcome.passed for outcome in found]
    counts = {"passed": verdicts.count(True), "failed": verdicts.count(False), "inconclusive": verdicts.count(None)}
    heading = f"Thresholds: {', '.join(f'{number} {word}' for word, number in counts.items() if number)}"
    return [heading, *(outcome.line for outcome in found)] if found else []


def _outcome(summary: RunSummary, cell: CellSummary, figure: str, bound: str) -> Outcome:
    value, asked = VALUES[figure](cell), Bound.of(bound)
    why = _missing(summary, cell, figure, value)
    passed = None if value is None else asked.holds(value)
    grows_away = figure in _COUNTS and asked.operator[0] != ">"
    if why and not (passed is False and grows_away):
        passed = None
    return Outcome(cell.label, cell.cell, figure, bound, value, passed, "" if passed is not None else why)


def _missing(summary: RunSummary, cell: CellSummary, figure: str, value: float | None) -> str:
    """Why a value decides nothing yet; empty if it does."""
    if not summary.complete:
        return "the run is not finished"
    if figure in _COUNTS:
        unknown = cell.not_audited or value is None
        return f"not audited in {cell.not_audited} of {cell.trials} trials" if unknown else ""
    if cell.invalid:
        return cell.verdict
    if cell.at_least is not None:
        return "not final"
    return "not measured" if value is None else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1_000 else f"{value:.3g}"
