"""What runs there are in a folder of results, also those that are damaged or have not ended."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sinkbench.columns import NOT_MEASURED, new_table, resumed_in_words
from sinkbench.errors import ResultsError, UserError
from sinkbench.kept import load_summary
from sinkbench.results import RunSummary

__all__ = ["RunRow", "list_runs", "runs_table"]

_LATEST = "latest"
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")
_HEADERS = ("started (UTC)", "plan", "machine", "stack", "trials", "complete", "passed", "")


@dataclass(frozen=True)
class RunRow:
    """One folder below the results."""

    run: str
    """The folder's name, which is the run's id."""
    started: str | None
    """As `2026-11-21 03:48:00`, by the id."""
    summary: RunSummary | None
    damage: str = ""
    """Why there is no summary."""


def list_runs(root: Path) -> list[RunRow]:
    """All folders below `root`, the newest run first and those whose name has no time last.

    ResultsError if there is no such folder; a run that cannot be read has a row that says why.
    """
    try:
        folders = [each for each in root.iterdir() if each.is_dir() and each.name != _LATEST and each.name[0] != "."]
    except OSError as failed:
        raise ResultsError(f"{root}: cannot be read ({failed.strerror}); name a folder of results") from None
    return [_row(each) for each in sorted(folders, key=_age, reverse=True)]


def runs_table(rows: Sequence[RunRow]) -> str:
    """A line a run, under headers, in the order given."""
    console = Console(width=1000, color_system=None, force_terminal=False, file=io.StringIO())
    table = new_table("run")
    for header in _HEADERS:
        table.add_column(header, no_wrap=True, justify="right" if header == "trials" else "left")
    for row in rows:
        table.add_row(*map(Text, (row.run, row.started or NOT_MEASURED, *_told(row))))
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().split("\n"))


def _age(folder: Path) -> tuple[bool, str]:
    return bool(_STAMP.match(folder.name)), folder.name


def _row(folder: Path) -> RunRow:
    stamp = _STAMP.match(folder.name)
    started = None if stamp is None else "{}-{}-{} {}:{}:{}".format(*stamp.groups())
    try:
        return RunRow(folder.name, started, load_summary(folder))
    except ResultsError as none:
        reason = str(none).removeprefix(f"{folder}: ")
    except UserError as damaged:
        reason = f"damaged: {str(damaged).removeprefix(f'{folder}/')}"
    except OSError as failed:
        reason = f"cannot be read ({failed.strerror}); check its permissions"
    return RunRow(folder.name, started, None, reason)


def _told(row: RunRow) -> tuple[str, ...]:
    summary = row.summary
    if summary is None:
        return *([NOT_MEASURED] * (len(_HEADERS) - 2)), " ".join(row.damage.split())
    found = summary.environment
    cores = f"{found['cpu_count']} cores" if found.get("cpu_count") else ""
    return (
        summary.plan.name,
        ", ".join(filter(None, [str(found.get("cpu_model") or ""), cores])) or NOT_MEASURED,
        str(found.get("stack") or NOT_MEASURED),
        f"{sum(cell.trials for cell in summary.cells)}",
        _yes(summary.complete),
        _yes(summary.passed),
        resumed_in_words(summary),
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"
