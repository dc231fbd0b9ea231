"""A run that was kept, read back as a whole: its summary, its trials, its plan and its connectors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, ValidationError

from sinkbench.errors import ResultsError
from sinkbench.plan import Plan
from sinkbench.results import RunSummary, TrialRecord
from sinkbench.store import RunFolder, read_summary, read_trials
from sinkbench.yamlfile import YamlFile

__all__ = ["KeptRun", "load_run", "why_no_summary"]


@dataclass(frozen=True)
class KeptRun:
    """What the folder of a run holds, but for its samples."""

    summary: RunSummary
    trials: list[TrialRecord]
    """In the order in which they were taken."""
    plan: Mapping[str, JsonValue]
    """Every key of plan.yaml; those that sinkbench has since got are filled in with their defaults."""
    connectors: Mapping[str, JsonValue]
    """The content of each connector file, by the name of its pipeline."""


def load_run(path: Path) -> KeptRun:
    """Reads a run.

    Args:
        path: the run's folder, a link to it such as results/latest, or its summary.json.

    Raises:
        UserError: it is no run, or a file of it is missing or damaged; the text names the file.
    """
    reason = why_no_summary(path) if path.is_dir() else None
    if reason is not None:
        raise ResultsError(f"{path}: {reason}")
    summary = read_summary(path)
    folder = path if path.is_dir() else path.parent
    return KeptRun(
        summary=summary,
        trials=read_trials(RunFolder(folder).trials_path),
        plan=_plan(folder / "plan.yaml"),
        connectors={
            file.relative_to(folder / "connectors").with_suffix("").as_posix(): _json(file)
            for file in sorted((folder / "connectors").glob("*/*.json"))
        },
    )


def why_no_summary(folder: Path) -> str | None:
    """Why a folder has no summary.json, and what to do; None if it has one."""
    run = RunFolder(folder)
    if run.summary_path.exists():
        return None
    if run.trials_path.exists() or (folder / "plan.yaml").exists():
        return "has no summary.json: its race still goes on or was killed; wait for it, or race again"
    return "is no run, there is no summary.json in it; name a run below the folder of results"


def _plan(path: Path) -> dict[str, JsonValue]:
    content = YamlFile(path, "plan", ResultsError).content
    try:
        return Plan.model_validate(content).whole()
    except ValidationError:
        # Of another sinkbench, which knows keys that are not known here. They can be compared all the same.
        return content


def _json(path: Path) -> JsonValue:
    try:
        content: JsonValue = json.loads(path.read_bytes())
    except OSError as failed:
        raise ResultsError(f"{path}: cannot be read ({failed.strerror}); check its permissions") from None
    except (ValueError, RecursionError) as broken:
        raise ResultsError(f"{path}: is not JSON ({broken}); restore it, or race again") from None
    return content
