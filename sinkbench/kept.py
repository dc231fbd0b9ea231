"""A run that was kept, read back as a whole: its summary, its trials, its plan and its connectors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, ValidationError

from sinkbench.cells import expand
from sinkbench.errors import ResultsError, UserError
from sinkbench.plan import Plan
from sinkbench.results import RunSummary, TrialRecord
from sinkbench.runsummary import summary_of
from sinkbench.store import RunFolder, read_summary, read_trials
from sinkbench.yamlfile import YamlFile

__all__ = ["KeptRun", "load_connectors", "load_run", "load_summary"]

_SUMMARY = "summary.json"


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
    """Reads a run; one that has not ended, up to its last whole trial.

    Args:
        path: the run's folder, a link to it such as results/latest, or its summary.json.

    Raises:
        UserError: it is no run, or a file of it is missing or damaged; the text names the file.
    """
    summary = load_summary(path)
    folder = path if path.is_dir() else path.parent
    return KeptRun(
        summary=summary,
        trials=read_trials(RunFolder(folder).trials_path),
        plan=_plan(folder / "plan.yaml"),
        connectors=load_connectors(folder / "connectors"),
    )


def load_summary(path: Path) -> RunSummary:
    """The summary of a run, from the same paths as `load_run`; of one that has not ended, up to its last whole trial.

    A race that is killed leaves a summary that may lack its last trial, or, of an earlier sinkbench, none at all.

    Raises:
        UserError: it is no run, or it is damaged.
    """
    if not path.is_dir():
        summary = read_summary(path)
        return summary if summary.complete or path.name != _SUMMARY else _up_to_date(RunFolder(path.parent), summary)
    folder = RunFolder(path)
    if folder.summary_path.exists():
        summary = read_summary(path)
        return summary if summary.complete else _up_to_date(folder, summary)
    trials = read_trials(folder.trials_path)
    if trials:
        try:
            return _summed(folder, trials, folder.path.resolve().name)
        except ValueError as broken:
            raise ResultsError(
                f"{path}: has no summary.json, and its trials make none ({broken}); race again"
            ) from None
    if folder.trials_path.exists() or folder.plan_path.exists():
        raise ResultsError(f"{path}: has no trial: its race has just begun or was killed; wait for it, or race again")
    raise ResultsError(f"{path}: is no run, there is no summary.json in it; name a run below the folder of results")


def load_connectors(folder: Path) -> dict[str, JsonValue]:
    """The content of each connector file below a folder, by its pipeline's name; ResultsError if one is damaged."""
    return {
        file.relative_to(folder).with_suffix("").as_posix(): _json(file) for file in sorted(folder.glob("*/*.json"))
    }


def _up_to_date(folder: RunFolder, summary: RunSummary) -> RunSummary:
    """The summary with the trials that came after it was written; as it is, if its plan can no longer be read."""
    trials = read_trials(folder.trials_path)
    try:
        return _summed(folder, trials, summary.run, summary)
    except (UserError, ValueError):
        return summary


def _summed(folder: RunFolder, trials: list[TrialRecord], run: str, known: RunSummary | None = None) -> RunSummary:
    """The summary over all trials; `known` tells what these do not. ValueError if they are of another plan."""
    try:
        plan = Plan.model_validate(YamlFile(folder.plan_path, "plan", ResultsError).content)
    except ValidationError:
        raise ResultsError(f"{folder.plan_path}: is no plan of this sinkbench; use that which ran it") from None
    workers = [each.workers for each in (*trials, *(known.cells if known else ()))]
    found = summary_of(
        run,
        plan,
        expand(plan, workers[0]) if workers else [],
        trials,
        complete=False,
        environment=known.environment if known else {},
        limits=known.limits if known else [],
        resumed=known.resumed if known else [],
    )
    # The plan's file may since have lost a secret, or have been edited.
    return found if known is None else found.model_copy(update={"plan": known.plan})


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
