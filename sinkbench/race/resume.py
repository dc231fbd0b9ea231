"""Keeps a run's results up to date in its folder, and resumes an interrupted run.

Its trials are compared, so nothing that affects a rate may have changed meanwhile."""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pydantic import JsonValue

from sinkbench.analysis.limits import with_block
from sinkbench.analysis.samples import Sample
from sinkbench.environment import SINK_KEYS, with_sink
from sinkbench.errors import ResultsError
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.plan import Plan, load_plan
from sinkbench.race.replacing import all_cells_left
from sinkbench.results import Limit, LimitInBlock, Profile, RunSummary, TrialRecord, settled
from sinkbench.runs.differences import ABSENT, Difference, between, of_named
from sinkbench.runs.reader import load_connectors, load_summary
from sinkbench.runs.store import RunFolder, read_summary, read_trials
from sinkbench.secrets import HIDDEN, redacted_values
from sinkbench.sinks.values import SinkSettings
from sinkbench.summary.cells import summary_of
from sinkbench.summary.selftest import is_selftest

# Unreadable figures, such as a service's CPU time, do not affect the pipelines.
_OF_NO_EFFECT = {"unmeasured"}
# The kernel reserves slightly different amounts of memory at each boot.
_MEMORY, _MEMORY_SHARE = "memory_bytes", 0.01


@dataclass(frozen=True)
class Unfinished:
    """An unfinished run, read from its folder."""

    folder: RunFolder
    plan: Plan
    cells: list[Cell]
    summary: RunSummary
    trials: list[TrialRecord]
    connectors: Mapping[str, JsonValue]
    """Contents of the stored connector files, by pipeline."""

    @property
    def left(self) -> list[Cell]:
        return all_cells_left(self.plan, self.cells, self.trials, self.summary.limits)

    def check(self, environment: Mapping[str, JsonValue], connectors: Path) -> None:
        """Raises ResultsError, with all changes, if the rest cannot be measured under the same conditions."""
        files = load_connectors(connectors)
        there = {
            name: as_kept(kept, redacted_values(files[name])) for name, kept in self.connectors.items() if name in files
        }
        was = {key: _as_far_as_known(key, self.summary.environment.get(key), now) for key, now in environment.items()}
        cleaned = {key: redacted_values(value) for key, value in environment.items()}
        found = [
            *plan_changes(self.plan, self.summary),
            *(each.in_words for each in [*changes(was, cleaned), *of_named("connectors", self.connectors, there)]),
        ]
        if found:
            raise ResultsError(
                f"{self.folder.path}: cannot be resumed, since trials before and after would not be alike;"
                f" {'; '.join(found)}; undo that, or race again"
            )

    def finish(self) -> RunSummary:
        """Writes the final summary of a run that has all trials."""
        return self.journal(self.summary.resumed).write(complete=True)

    def journal(self, resumed: Sequence[str]) -> "Journal":
        """Goes on with the run; `resumed` has the time of each resumption."""
        kept = [*self.trials], [*self.summary.limits], [*self.summary.profiles]
        return Journal(self.folder, self.plan, self.cells, self.summary.environment, *kept, resumed)


def run_folder(path: Path) -> RunFolder:
    """Returns the real folder of a run, also for a link such as results/latest or its summary.json."""
    whole = (path if path.is_dir() else path.parent).resolve()
    here = Path.cwd()
    # The shorter name that a user would write.
    return RunFolder(whole.relative_to(here) if here in whole.parents else whole)


def load_unfinished(path: Path, connectors: Path) -> Unfinished | None:
    """Reads an unfinished run; None if it is complete. Raises UserError if it is not a run or cannot be resumed."""
    if not path.is_dir():
        # So that an error names the path as the user wrote it.
        read_summary(path)
    folder = run_folder(path)
    summary = load_summary(folder.path)
    if summary.complete:
        return None
    if not folder.summary_path.exists():
        raise ResultsError(f"{folder.path}: has no summary.json, which says what it was measured on; race again")
    plan = load_plan(folder.plan_path, connectors, kept=True)
    if is_selftest(plan):
        raise ResultsError(f"{folder.path}: is a selftest, which ends with its time; run `sinkbench selftest` again")
    cells = expand(plan, summary.cells[0].workers) if summary.cells else []
    trials = read_trials(folder.trials_path)
    unfinished = Unfinished(folder, plan, cells, summary, trials, load_connectors(folder.path / "connectors"))
    try:
        summary_of("", plan, cells, trials, complete=False, environment={}, limits=summary.limits)
    except ValueError as broken:
        raise ResultsError(f"{folder.trials_path}: does not follow from its plan ({broken}); race again") from None
    return unfinished


def plan_changes(plan: Plan, summary: RunSummary) -> list[str]:
    """Returns how the stored plan differs from the one that ran, by digest and seed."""
    if plan.sha256 == summary.plan.sha256 and summary.plan.seed in (None, plan.seed):
        return []
    if HIDDEN in plan.show():
        return [f"plan.yaml has {HIDDEN} where a secret was, which only the first race knew"]
    if plan.sha256 == summary.plan.sha256:
        return [f"plan seed was {summary.plan.seed}, is {ABSENT if plan.seed is None else plan.seed}"]
    return ["plan.yaml is not the plan that ran: it was edited, or this sinkbench has other defaults"]


def changes(was: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> list[Difference]:
    """Returns the changes of the environment that could affect a rate."""
    had, has = ({key: value for key, value in each.items() if key not in _OF_NO_EFFECT} for each in (was, now))
    before, after = had.get(_MEMORY), has.get(_MEMORY)
    if isinstance(before, int) and isinstance(after, int) and abs(after - before) <= _MEMORY_SHARE * before:
        has[_MEMORY] = before
    return list(between("environment", had, has))


def as_kept(kept: JsonValue, now: JsonValue) -> JsonValue:
    """The content of a file now, or the stored text if they differ only in redacted secrets."""
    if isinstance(kept, dict) and isinstance(now, dict):
        return {key: as_kept(kept.get(key), value) for key, value in now.items()}
    if isinstance(kept, list) and isinstance(now, list) and len(kept) == len(now):
        return [as_kept(*each) for each in zip(kept, now, strict=True)]
    if isinstance(kept, str) and isinstance(now, str) and HIDDEN in kept:
        pattern = ".*".join(map(re.escape, kept.split(HIDDEN)))
        return kept if re.fullmatch(pattern, now, re.DOTALL) else now
    return now


def _as_far_as_known(key: str, was: JsonValue, now: JsonValue) -> JsonValue:
    """Leaves out the sinks, whose settings are unknown before a pilot; the race compares them then."""
    if key in SINK_KEYS and isinstance(was, dict) and isinstance(now, dict):
        return {service: value for service, value in was.items() if service in now}
    return was


@dataclass(eq=False)
class Journal:
    """Trials, limits and environment of one run. Each call has written what it adds to disk when it returns.

    A run that is `resumed`, at these times, goes on with its earlier results."""

    folder: RunFolder
    plan: Plan
    cells: Sequence[Cell]
    environment: dict[str, JsonValue]
    trials: list[TrialRecord] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    resumed: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.seconds = [trial.seconds for trial in self.trials]
        # New for each resumption, and short enough for the name of an index or table.
        used = {trial.trial.partition("_")[0] for trial in self.trials}
        self.token = next(token for _ in count() if (token := secrets.token_hex(3)) not in used)

    def write(self, *, complete: bool) -> RunSummary:
        summary = summary_of(
            self.folder.run,
            self.plan,
            self.cells,
            self.trials,
            complete=complete,
            environment=self.environment,
            limits=self.limits,
            profiles=self.profiles,
            resumed=self.resumed,
        )
        self.folder.write_summary(summary)
        return summary

    def add_trial(self, record: TrialRecord, samples: Sequence[Sample]) -> TrialRecord:
        """Stores a trial and returns its record with the name of the samples' file."""
        relative = self.folder.write_samples(record.trial, [sample.row() for sample in samples])
        record = record.model_copy(update={"samples": relative})
        self.folder.append_trial(record)
        self.trials = settled([*self.trials, record])
        return record

    def add_limit(self, limit: Limit) -> None:
        self.limits.append(limit)
        self.write(complete=False)

    def add_to_limit(self, limit: Limit, found: LimitInBlock) -> None:
        """Stores a limit's result in one block."""
        self.limits[self.limits.index(limit)] = with_block(limit, found)
        self.write(complete=False)

    def add_sink(self, sink: str, settings: SinkSettings) -> None:
        """Stores a sink's settings. Raises ResultsError if they differ from those of a resumed run's trials."""
        environment = with_sink(self.environment, sink, settings)
        found = between("environment", self.environment, environment) if self.resumed else ()
        if changed := [each.in_words for each in found if each.a != ABSENT]:
            raise ResultsError(f"{self.folder.path}: cannot be resumed; {'; '.join(changed)}; undo that, or race again")
        self.environment = environment
