"""The newest run that a command has kept in a folder, as it is written."""

import json
from pathlib import Path
from typing import Any


def summary_of(folder: Path) -> dict[str, Any]:
    """Its summary."""
    return dict(json.loads((folder / "results" / "latest" / "summary.json").read_text()))


def trials_of(folder: Path, *, pilots: bool = False) -> list[dict[str, Any]]:
    """Its trials, in the order in which they were taken; with `pilots` also those that were taken once more."""
    lines = (folder / "results" / "latest" / "trials.jsonl").read_text().splitlines()
    return [trial for trial in map(json.loads, lines) if pilots or not trial["pilot"]]
