"""The runs in a folder of results, including damaged and unfinished ones, and how a user names one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sinkbench.errors import ResultsError, UserError
from sinkbench.results import RunSummary
from sinkbench.runs.reader import load_summary

_LATEST = "latest"
_MOST_NAMED = 10
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
    return [_row(each) for each in _folders(root)]


def find_run(name: str | None, root: Path) -> Path:
    """The folder of a run, or its summary.json, by how a user names it: None or `latest` for the newest below `root`,
    `latest~N` for the one N before, its name or a unique prefix of it, or a path. ResultsError if it is none."""
    text = name or _LATEST
    if place := re.fullmatch(rf"{_LATEST}(?:~(\d+))?", text):
        runs, back = _folders(root), int(place[1] or 0)
        if back < len(runs):
            return runs[back]
        raise ResultsError(f"{text}: there are {len(runs)} runs in {root}; `sinkbench race quick` makes one")
    if (root / text).exists():
        return root / text
    if Path(text).exists() or "/" in text:
        return Path(text)
    runs = _folders(root)
    found = [each for each in runs if each.name.startswith(text)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(each.name for each in (found or runs)[:_MOST_NAMED])
    what = f"is the beginning of {len(found)} runs" if found else f"is no run in {root}; there are"
    raise ResultsError(f"{text}: {what}: {listed or 'none'}")


def newest_two(root: Path) -> tuple[Path, Path]:
    """The newest run and the one of the same plan before it, the older first. ResultsError if there are no two."""
    runs = [row for row in list_runs(root) if row.summary is not None and any(c.trials for c in row.summary.cells)]
    for place, row in enumerate(runs):
        for other in runs[place + 1 :]:
            if row.summary and other.summary and row.summary.plan.name == other.summary.plan.name:
                return root / other.run, root / row.run
    raise ResultsError(f"{root}: there are no two runs of one plan; name the runs: sinkbench compare RUN RUN")


def _folders(root: Path) -> list[Path]:
    try:
        folders = [each for each in root.iterdir() if each.is_dir() and each.name != _LATEST and each.name[0] != "."]
    except FileNotFoundError:
        raise ResultsError(
            f"{root}: there are no results; `sinkbench race quick` makes some, --results names others"
        ) from None
    except OSError as failed:
        raise ResultsError(f"{root}: cannot be read ({failed.strerror}); name a folder of results") from None
    return sorted(folders, key=_age, reverse=True)


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
