"""The runs in a folder of results, including damaged and unfinished ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sinkbench.errors import ResultsError, UserError
from sinkbench.results import RunSummary
from sinkbench.runs.reader import load_summary

_LATEST = "latest"
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")


@dataclass(frozen=True)
class RunRow:
    """A folder below the results; `damage` says why there is no summary."""

    run: str
    started: str | None
    summary: RunSummary | None
    damage: str = ""


def list_runs(root: Path) -> list[RunRow]:
    """All folders below `root`, newest first, even unreadable ones; ResultsError if there is no such folder."""
    try:
        folders = [each for each in root.iterdir() if each.is_dir() and each.name != _LATEST and each.name[0] != "."]
    except OSError as failed:
        raise ResultsError(f"{root}: cannot be read ({failed.strerror}); name a folder of results") from None
    return [_row(each) for each in sorted(folders, key=_age, reverse=True)]


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
