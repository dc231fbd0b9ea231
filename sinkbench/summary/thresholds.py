"""Whether a run meets the thresholds of its plan. What is not measured or not final neither passes nor fails."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sinkbench.analysis.bound import Bound
from sinkbench.analysis.rates import usable_median
from sinkbench.analysis.words import significant
from sinkbench.errors import EXIT_CHECK_FAILED, EXIT_DONE, EXIT_INCONCLUSIVE
from sinkbench.metrics.metric import find
from sinkbench.results import CellSummary, RunSummary

_SIGNS = {True: "✓", False: "✗", None: "?"}
# Figures over all trials, which final or not only grow.
_COUNTS = ("lost", "duplicates")
_PATHS = {
    "efficiency": "efficiency",
    **{f"{name}_ms": f"latency_ms.{name}" for name in ("p50", "p95", "p99")},
    "cpu_seconds_per_million": "total_cpu_seconds_per_million.median",
    "memory_mb": "total_peak_memory_bytes.median",
    "disk_bytes_per_record": "disk_bytes_per_record.median",
    "cost_per_million": "cost.per_million",
    **{name: f"audit.{name}" for name in _COUNTS},
}


def value_of(cell: CellSummary, figure: str) -> float | None:
    if figure == "records_per_second":
        return usable_median(cell)
    if figure == "connections":
        seen = cell.connections
        return seen.server_peak if seen.server_peak is not None else seen.clients_peak
    found: float | None = find(cell, _PATHS[figure])
    return found / 1e6 if found is not None and figure == "memory_mb" else found


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
        value = "" if self.value is None else f" {significant(self.value)}"
        found = f"{_SIGNS[self.passed]} {self.cell}: {self.figure}{value}"
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
    counts = Counter(outcome.passed for outcome in found)
    words = {True: "passed", False: "failed", None: "inconclusive"}
    heading = f"Thresholds: {', '.join(f'{counts[each]} {word}' for each, word in words.items() if counts[each])}"
    return [heading, *(outcome.line for outcome in found)] if found else []


def _outcome(summary: RunSummary, cell: CellSummary, figure: str, bound: str) -> Outcome:
    value, asked = value_of(cell, figure), Bound.of(bound)
    why = why_undecided(summary, cell, figure, value)
    passed = None if value is None else asked.holds(value)
    grows_away = figure in _COUNTS and asked.operator[0] != ">"
    if why and not (passed is False and grows_away):
        passed = None
    return Outcome(cell.label, cell.cell, figure, bound, value, passed, "" if passed is not None else why)


def why_undecided(summary: RunSummary, cell: CellSummary, figure: str, value: float | None) -> str:
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
