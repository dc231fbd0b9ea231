"""Keeps a run's results up to date in its folder."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from pydantic import JsonValue

from sinkbench.analysis.limits import with_block
from sinkbench.analysis.samples import Sample
from sinkbench.environment import with_sink
from sinkbench.errors import ResultsError
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan
from sinkbench.results import Limit, LimitInBlock, RunSummary, TrialRecord, settled
from sinkbench.runs.differences import ABSENT, environment_differences
from sinkbench.runs.store import RunFolder
from sinkbench.sinks.values import SinkSettings
from sinkbench.summary.cells import summary_of


@dataclass(frozen=True)
class Earlier:
    """The results of a resumed run; `resumed` has the time of each resumption."""

    trials: Sequence[TrialRecord]
    limits: Sequence[Limit] = ()
    resumed: Sequence[str] = ()


class Journal:
    """Trials, limits and environment of one run. Each call has written what it adds to disk when it returns."""

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
        # New for each resumption, and short enough for the name of an index or table.
        used = {trial.trial.partition("_")[0] for trial in had.trials}
        self.token = next(token for _ in count() if (token := secrets.token_hex(3)) not in used)
        self._environment = environment
        self._resumed = list(had.resumed)
        self.resumed = earlier is not None

    def write(self, *, complete: bool) -> RunSummary:
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
        environment = with_sink(self._environment, sink, settings)
        found = environment_differences(self._environment, environment) if self.resumed else []
        if changed := [each.in_words for each in found if each.a != ABSENT]:
            raise ResultsError(f"{self.folder.path}: cannot be resumed; {'; '.join(changed)}; undo that, or race again")
        self._environment = environment
