"""Reads a stored run: its summary, trials, plan and connectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, ValidationError

from loadgen.reading import parse_json, read_text
from sinkbench.errors import ResultsError, UserError
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.results import RunSummary, TrialRecord
from sinkbench.runs.store import RunFolder, read_summary, read_trials
from sinkbench.summary.cells import summary_of
from sinkbench.yamlfile import YamlFile

_SUMMARY = "summary.json"


@dataclass(frozen=True)
class StoredRun:
    """The folder of a run without its samples; connector files are by pipeline."""

    summary: RunSummary
    trials: list[TrialRecord]
    plan: Mapping[str, JsonValue]
    connectors: Mapping[str, JsonValue]


def load_run(path: Path) -> StoredRun:
    """Reads a run from its folder, a link to it such as results/latest, or its summary.json. An unfinished run is
    read up to its last complete trial. UserError if it is no run, or a file is missing or damaged."""
    summary = load_summary(path)
    folder = path if path.is_dir() else path.parent
    return StoredRun(
        summary=summary,
        trials=read_trials(RunFolder(folder).trials_path),
        plan=_plan(folder / "plan.yaml").whole(),
        connectors=load_connectors(folder / "connectors"),
    )


def load_summary(path: Path) -> RunSummary:
    """The summary, with the paths and errors of `load_run`; from the trials, since a killed race may lack the last
    one."""
    file = path / _SUMMARY if path.is_dir() else path
    folder = RunFolder(file.parent)
    if file.exists() or not path.is_dir():
        summary = read_summary(file)
        if file.name != _SUMMARY:
            return summary
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
    """The content of each connector file by pipeline; ResultsError if one is damaged."""
    return {
        file.relative_to(folder).with_suffix("").as_posix(): _json(file) for file in sorted(folder.glob("*/*.json"))
    }


def _up_to_date(folder: RunFolder, summary: RunSummary) -> RunSummary:
    """The summary updated with later trials; unchanged if its plan cannot be read."""
    trials = read_trials(folder.trials_path)
    try:
        return _summed(folder, trials, summary.run, summary)
    except (UserError, ValueError):
        return summary


def _summed(folder: RunFolder, trials: list[TrialRecord], run: str, known: RunSummary | None = None) -> RunSummary:
    """The summary over all trials, with other fields from `known`; ValueError if they are of another plan."""
    plan = _plan(folder.plan_path)
    workers = [each.workers for each in (*trials, *(known.cells if known else ()))]
    cells = expand(plan, workers[0]) if workers else []
    if known is None:
        return summary_of(run, plan, cells, trials, complete=False, environment={})
    environment, limits, resumed = known.environment, known.limits, known.resumed
    found = summary_of(
        run, plan, cells, trials, complete=False, environment=environment, limits=limits, resumed=resumed
    )
    # The plan's file may have been redacted or edited since.
    return found.model_copy(update={"plan": known.plan})


def _plan(path: Path) -> Plan:
    try:
        return Plan.model_validate(YamlFile(path, "plan", ResultsError).content)
    except ValidationError:
        raise ResultsError(f"{path}: is no plan of this sinkbench; use that which ran it") from None


def _json(path: Path) -> JsonValue:
    try:
        content: JsonValue = parse_json(read_text(path, ResultsError))
    except FileNotFoundError:
        raise ResultsError(f"{path}: there is no such file; restore it, or race again") from None
    except ValueError as broken:
        raise ResultsError(f"{path}: is not JSON ({broken}); restore it, or race again") from None
    return content
