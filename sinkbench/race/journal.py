"""What a run has come to so far, kept up to date in its folder."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import JsonValue

from sinkbench.analysis.limits import with_block
from sinkbench.analysis.samples import Sample
from sinkbench.environment import with_sink
from sinkbench.errors import ResultsError
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan
from sinkbench.results import Limit, LimitInBlock, RunSummary, TrialRecord
from sinkbench.runs.differences import ABSENT, environment_differences
from sinkbench.runs.store import RunFolder
from sinkbench.sinks.reading import SinkSettings
from sinkbench.summary.run import summary_of


@dataclass(frozen=True)
class Earlier:
    """What a run that is taken up again has already; `resumed` is when it was taken up before, each time."""

    trials: Sequence[TrialRecord]
    limits: Sequence[Limit] = ()
    resumed: Sequence[str] = ()


class Journal:
    """The trials, the limits and the environment of one run, each on the disk when the call that adds it returns.

    Attributes:
        trials, limits: in the order in which they were taken.
        seconds: how long each trial took.
        token: begins the names of the run's trials.
    """

    def __init__(
        self,
        folder: RunFolder,
        plan: Plan,
        cells: Sequence[Cell],
        environment: dict[str, JsonValue],
        earlier: Earlier | None = None,
    ) -> None:
        had = earlier or Earlier([])
        self.folder = folder
        self.plan = plan
        self.cells = cells
        self.trials = list(had.trials)
        self.limits = list(had.limits)
        self.seconds = [trial.seconds for trial in had.trials]
        self.token = _new_token(had.trials)
        self._environment = environment
        self._resumed = list(had.resumed)
        if earlier is not None:
            self._resumed.append(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")

    @property
    def resumed(self) -> bool:
        """Whether the run was taken up again."""
        return bool(self._resumed)

    def write(self, *, complete: bool) -> RunSummary:
        """Writes the summary of what there is, and returns it."""
        summary = summary_of(
            self.folder.run,
            self.plan,
            self.cells,
            self.trials,
            complete=complete,
            environment=self._environment,
            limits=self.limits,
            resumed=self._resumed,
        )
        self.folder.write_summary(summary)
        return summary

    def add_trial(self, record: TrialRecord, samples: Sequence[Sample]) -> TrialRecord:
        """Keeps a trial and its samples. Returns its record with the name of their file."""
        relative = self.folder.write_samples(record.trial, [sample.row() for sample in samples])
        record = record.model_copy(update={"samples": relative})
        self.folder.append_trial(record)
        self.trials.append(record)
        return record

    def add_limit(self, limit: Limit) -> None:
        """Keeps a limit."""
        self.limits.append(limit)
        self.write(complete=False)

    def add_to_limit(self, limit: Limit, found: LimitInBlock) -> None:
        """Keeps what a limit came to in one block."""
        self.limits[self.limits.index(limit)] = with_block(limit, found)
        self.write(complete=False)

    def add_sink(self, sink: str, settings: SinkSettings) -> None:
        """Takes down how a sink is set. Raises ResultsError if the trials of a resumed run found it set otherwise."""
        environment = with_sink(self._environment, sink, settings)
        found = environment_differences(self._environment, environment) if self.resumed else []
        if changed := [each.in_words for each in found if each.a != ABSENT]:
            raise ResultsError(f"{self.folder.path}: cannot be resumed; {'; '.join(changed)}; undo that, or race again")
        self._environment = environment


def _new_token(trials: Sequence[TrialRecord]) -> str:
    """Another token in every run, and each time that one is taken up again.

    Short, so that it fits into the name of an index or a table.
    """
    used = {trial.trial.partition("_")[0] for trial in trials}
    while (token := secrets.token_hex(3)) in used:
        pass
    return token
