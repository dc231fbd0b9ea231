"""The runs in a folder of results, damaged and unfinished ones, too: found by how a user names them, and read."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue, ValidationError

from loadgen.reading import parse_json, read_text
from sinkbench.errors import ResultsError, UserError
from sinkbench.results import RunSummary, TrialRecord
from sinkbench.runs.store import RunFolder, check_writable, read_summary, read_trials
from sinkbench.yamlfile import YamlFile

if TYPE_CHECKING:
    from sinkbench.plan.plan import Plan

_SUMMARY = "summary.json"


@dataclass(frozen=True)
class StoredRun:
    """The folder of a run without its samples; connector files are by pipeline."""

    summary: RunSummary
    trials: list[TrialRecord]
    plan: Mapping[str, JsonValue]
    connectors: Mapping[str, JsonValue]


def load_run(path: Path, *, whole: bool = True) -> StoredRun:
    """Reads a run from its folder, a link to it such as results/latest, or its summary.json. An unfinished run is
    read up to its last complete trial. UserError if it is no run or has no trial, or a file is missing or damaged. If
    not `whole`, the plan has no defaults of keys that it was written without."""
    summary = load_summary(path)
    folder = path if path.is_dir() else path.parent
    trials, plan = read_trials(RunFolder(folder).trials_path), folder / "plan.yaml"
    if not trials and not any(cell.trials for cell in summary.cells):
        way = f"take them: sinkbench resume {summary.run}"
        raise ResultsError(f"{path}: no answer: none of its trials has ended; {way}")
    content = _plan(plan).whole() if whole else YamlFile(plan, "plan", ResultsError).content
    return StoredRun(summary=summary, trials=trials, plan=content, connectors=load_connectors(folder / "connectors"))


def load_summary(path: Path) -> RunSummary:
    """The summary, as by `load_run`; from the trials, since a killed race's may lack the last one."""
    file = path / _SUMMARY if path.is_dir() else path
    folder = RunFolder(file.parent)
    if file.exists() or not path.is_dir():
        summary = read_summary(file)
        if summary.complete or file.name != _SUMMARY:
            return summary
        trials = read_trials(folder.trials_path)
        # A plan that cannot be read any more leaves it as it is.
        with suppress(UserError, ValueError):
            return _summed(folder, trials, summary.run, summary)
        return summary
    if trials := read_trials(folder.trials_path):
        try:
            return _summed(folder, trials, folder.path.resolve().name)
        except ValueError as error:
            raise ResultsError(f"{path}: has no summary.json, and its trials make none ({error}); race again") from None
    if folder.trials_path.exists() or folder.plan_path.exists():
        raise ResultsError(f"{path}: has no trial: its race has just begun or was killed; wait for it, or race again")
    raise ResultsError(f"{path}: is no run, there is no summary.json in it; name a run below the folder of results")


def load_connectors(root: Path) -> dict[str, JsonValue]:
    """The content of each connector file by pipeline; ResultsError if one is damaged."""
    return {file.relative_to(root).with_suffix("").as_posix(): _json(file) for file in sorted(root.glob("*/*.json"))}


def _summed(folder: RunFolder, trials: list[TrialRecord], run: str, known: RunSummary | None = None) -> RunSummary:
    """The summary over all trials, with other fields from `known`; ValueError if they are of another plan."""
    # Imported here: few runs are unfinished, and a plan's models take long to make.
    from sinkbench.plan.cells import expand
    from sinkbench.summary.cells import summary_of

    plan = _plan(folder.plan_path)
    workers = [each.workers for each in (*trials, *(known.cells if known else ()))]
    cells = expand(plan, workers[0]) if workers else []
    more = {} if known is None else {name: getattr(known, name) for name in ("limits", "resumed")}
    environment = {} if known is None else known.environment
    found = summary_of(run, plan, cells, trials, complete=False, environment=environment, **more)
    # The plan's file may have been redacted or edited since.
    return found if known is None else found.model_copy(update={"plan": known.plan})


def _plan(path: Path) -> "Plan":
    from sinkbench.plan.plan import Plan

    try:
        return Plan.model_validate(YamlFile(path, "plan", ResultsError).content)
    except ValidationError:
        raise ResultsError(f"{path}: is no plan of this sinkbench; use that which ran it") from None


def _json(path: Path) -> JsonValue:
    try:
        content: JsonValue = parse_json(read_text(path, ResultsError, if_missing="restore it, or race again"))
    except ValueError as broken:
        raise ResultsError(f"{path}: is not JSON ({broken}); restore it, or race again") from None
    return content


_LATEST = "latest"
BASELINES = "baselines"  # the folder below the results that has runs by their user's names
_MOST_NAMED = 10
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")


@dataclass(frozen=True)
class RunRow:
    """A folder below the results; `damage` says why there is no summary."""

    run: str
    summary: RunSummary | None
    damage: str = ""


def started_at(run: str) -> str | None:
    """The start in a run's id, as `2026-11-21T03:48:00Z`; None if it has none."""
    stamp = _STAMP.match(run)
    return None if stamp is None else "{}-{}-{}T{}:{}:{}Z".format(*stamp.groups())


def baseline_folder(name: str, baselines: Path) -> Path:
    """The folder of a baseline to be written; ResultsError if it cannot have this name, UserError if no file can."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", name) or name.startswith(_LATEST):
        raise ResultsError(f"--save {name}: is no name of a baseline; use letters, digits, '.', '_' and '-'")
    check_writable(baselines)
    return baselines / name


def list_runs(root: Path) -> list[RunRow]:
    """All folders below `root`, newest first, even unreadable ones; ResultsError if there is no such folder."""
    return [_row(each) for each in _folders(root)]


def find_run(name: str | None, root: Path, baselines: Path | None = None) -> Path:
    """The folder of a run, or its summary.json, by how a user names it: None or `latest` for the newest below `root`,
    `latest~N` for N before it, a folder of `baselines`, its name or a unique prefix, or a path. Raises ResultsError."""
    text = name or _LATEST
    if place := re.fullmatch(rf"{_LATEST}(?:~(\d+))?", text):
        runs, back = _folders(root), int(place[1] or 0)
        if back < len(runs):
            return runs[back]
        raise ResultsError(f"{text}: there are {len(runs)} runs in {root}; `sinkbench race quick` makes one")
    if baselines is not None and (baselines / text / _SUMMARY).exists():
        return baselines / text
    if (root / text).exists():
        return root / text
    if Path(text).exists() or "/" in text:
        return Path(text)
    runs = _folders(root)
    found = [each for each in runs if each.name.startswith(text)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(each.name for each in (found or runs)[:_MOST_NAMED])
    other = f" and no baseline in {baselines}" if baselines else ""
    what = f"is the beginning of {len(found)} runs" if found else f"is no run in {root}{other}; there are"
    raise ResultsError(f"{text}: {what}: {listed or 'none'}")


def newest(root: Path) -> Path | None:
    """The newest run that can be read and has a trial."""
    return next((root / row.run for row in _with_trials(root)), None)


def _with_trials(root: Path) -> list[RunRow]:
    return [row for row in list_runs(root) if row.summary is not None and any(c.trials for c in row.summary.cells)]


def newest_two(root: Path) -> tuple[Path, Path]:
    """The newest run and the one of the same plan before it, the older first. ResultsError if there are no two."""
    for row, other in combinations(_with_trials(root), 2):
        if row.summary and other.summary and row.summary.plan.name == other.summary.plan.name:
            return root / other.run, root / row.run
    raise ResultsError(f"{root}: there are no two runs of one plan; name the runs: sinkbench compare RUN RUN")


def _folders(root: Path) -> list[Path]:
    try:
        folders = [each for each in root.iterdir() if each.is_dir() and each.name[0] != "."]
    except FileNotFoundError:
        raise ResultsError(
            f"{root}: there are no results; `sinkbench race quick` makes some, --results names others"
        ) from None
    except OSError as failed:
        raise ResultsError(f"{root}: cannot be read ({failed.strerror}); name a folder of results") from None
    runs = (each for each in folders if each.name not in (_LATEST, BASELINES))
    return sorted(runs, key=lambda folder: (bool(_STAMP.match(folder.name)), folder.name), reverse=True)


def _row(folder: Path) -> RunRow:
    try:
        return RunRow(folder.name, load_summary(folder))
    except ResultsError as none:
        reason = str(none).removeprefix(f"{folder}: ")
    except UserError as damaged:
        reason = f"damaged: {str(damaged).removeprefix(f'{folder}/')}"
    except OSError as failed:
        reason = f"cannot be read ({failed.strerror}); check its permissions"
    return RunRow(folder.name, None, reason)
