"""A run: all trials of a plan on one stack, block by block, into one folder of results."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import JsonValue

from sinkbench.bench import Bench, Names
from sinkbench.cells import Cell
from sinkbench.differences import ABSENT, environment_differences
from sinkbench.environment import with_sink
from sinkbench.errors import ResultsError
from sinkbench.limits.efficiency import GENERATOR, limit_line
from sinkbench.limits.measure import jobs
from sinkbench.probes import CLIENT_ERRORS, Sample
from sinkbench.results import Limit, RunSummary, TrialRecord
from sinkbench.runsummary import summary_of
from sinkbench.sizing import MAXIMUM_RECORDS, MINIMUM_RECORDS, records_for
from sinkbench.store import RunFolder
from sinkbench.sustain import sustain_trial
from sinkbench.todo import BlockLeft, block_of, blocks_left, cells_left, feed, is_over, new_search, searches_of
from sinkbench.trial import TOO_SHORT, drain_trial, pilot
from sinkbench.ui import Step, Ui
from sinkbench.until import most_blocks

__all__ = ["Kept", "Race", "is_too_short"]

# A pilot's topic must not run dry before its time is over, at the highest rate that a pipeline may have.
PILOT_RECORDS_PER_SECOND = 100_000
# But large records would fill the disk with what is only a first look.
PILOT_BYTES = 600_000_000
# A search begins a little below what a full topic drains at: a pipeline that has to wait for records does no better.
START_SHARE = 0.8
USUAL_SEARCH_STEPS = 6
# A trial that was too short is taken again so often, each time with so many times the records at least.
MOST_RETAKES = 3
RETAKE_FACTOR = 4.0
# What a cell is taken to store where its pilot stored nothing; its trials then show the same failure, quickly.
FALLBACK_RECORDS_PER_SECOND = 1_000.0
# Resetting, loading, starting, stopping and auditing, beside the drain itself.
OVERHEAD_SECONDS = 10.0
# Measuring a limit: its search takes some ten steps.
LIMIT_SECONDS = 40.0
# How long a run waits for a service that is not its own to start again.
RETURN_SECONDS = 60.0


def is_too_short(record: TrialRecord) -> bool:
    """Whether nothing is wrong with a trial but that its topic was empty too soon, since its pilot was too slow."""
    return record.invalid == [TOO_SHORT] and record.audit is not None and record.records < MAXIMUM_RECORDS


@dataclass(frozen=True)
class Kept:
    """What a run that is taken up again has already."""

    trials: Sequence[TrialRecord]
    limits: Sequence[Limit] = ()
    resumed: Sequence[str] = ()
    """When it was taken up before."""


class Race:
    """One run of a plan, from its beginning or from where it was interrupted."""

    def __init__(
        self,
        bench: Bench,
        cells: Sequence[Cell],
        folder: RunFolder,
        ui: Ui,
        environment: dict[str, JsonValue],
        seconds: float | None = None,
        kept: Kept | None = None,
    ) -> None:
        """
        Args:
            bench: the stack, its clients and the plan, with its seed drawn.
            cells: what to measure, on the stack's workers.
            folder: where results go.
            ui: what a person sees.
            environment: what the summary says of the machine.
            seconds: no block begins that would be expected to end later than so long after the run's start.
            kept: of a run that is taken up again; only what is not in there is taken.

        Raises ValueError if the trials kept are not those of this plan and these cells.
        """
        self._bench = bench
        self._plan = bench.plan
        self._cells = cells
        self._folder = folder
        self._ui = ui
        self._environment = environment
        had = kept or Kept([])
        self._token = _token_beside(had.trials)
        self._rates: dict[str, float] = {}
        self._trials = list(had.trials)
        self._seconds = [trial.seconds for trial in had.trials]
        self._step = 0
        self._retaken = 0
        self._searched = 0
        self._limits = list(had.limits)
        self._resumed = list(had.resumed) if kept is None else [*had.resumed, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"]
        self._searches = searches_of(self._plan, cells, had.trials, had.limits)
        self._cells_left = cells_left(self._plan, cells, had.trials, had.limits)
        known = {(limit.sink, limit.way) for limit in had.limits}
        wanted = jobs(bench, cells, self._token) if bench.plan.limits else []
        self._limit_jobs = [job for job in wanted if (job.sink, job.way) not in known]
        self._blocks_left = [] if self._plan.mode == "capacity" else blocks_left(self._plan, cells, had.trials)
        self._most = most_blocks(bench.plan)
        self._deadline = None if seconds is None else time.monotonic() + seconds

    @property
    def _steps(self) -> int:
        return len(self._places) + len(self._limit_jobs) + self._trials_in_all

    @property
    def _trials_in_all(self) -> int:
        """How many trials there will be; of a search, about. Without those that were kept."""
        if self._plan.mode != "capacity":
            return sum(len(block.cells) for block in self._blocks_left) + self._retaken
        begun = sum(search.steps_left for search in self._searches.values()) + self._searched
        return begun + (len(self._cells) - len(self._searches)) * (USUAL_SEARCH_STEPS + self._plan.trials)

    @property
    def _places(self) -> list[Cell]:
        """The cells with trials to take that differ in more than the rate offered: each needs a pilot."""
        return list({cell.place: cell for cell in self._cells_left}.values())

    def run(self) -> RunSummary:
        """Takes all pilots and trials, or those that are left.

        There is a summary of the finished trials all the time, also after a power cut. Whatever ends the run early,
        what a trial created is removed.

        Returns:
            The summary, which is also in the run's folder.
        """
        self._bench.begin(self._token)
        trials = None if self._plan.mode == "capacity" else self._most
        self._ui.begin(self._folder.run, [cell.key for cell in self._cells], trials, self._trials)
        if self._resumed:
            self._ui.say(f"going on with {self._folder.run}: {len(self._trials)} trials are kept")
        try:
            self._write_summary(complete=False)
            self._pilots()
            self._measure_limits()
            if self._plan.mode == "capacity":
                for cell in self._cells_left:
                    self._search(cell)
            else:
                self._blocks()
        except BaseException:
            self._write_summary(complete=False)
            raise
        return self._write_summary(complete=True)

    def _blocks(self) -> None:
        at_most = "" if self._plan.until is None and self._deadline is None else "at most "
        for block in self._blocks_left:
            if self._is_over(block):
                break
            for cell in block.cells:
                name = f"{cell.key}, trial {block.number} of {at_most}{self._most}"
                if cell.offered is None:
                    self._drain(cell, block.number, name)
                else:
                    self._sustain(cell, block.number, name, cell.offered)

    def _is_over(self, block: BlockLeft) -> bool:
        """Whether this block is not to be taken; only whole blocks are, so that ratios have both of their trials."""
        if self._deadline is not None and block.number > 1:
            return time.monotonic() + len(self._cells) * self._trial_seconds() > self._deadline
        return is_over(self._plan, self._cells, self._trials, block)

    def _trial_seconds(self) -> float:
        """How long a trial takes: the mean of those so far."""
        load = self._plan.drain.window_seconds if self._plan.drains else self._plan.sustain.seconds
        usual = load + OVERHEAD_SECONDS
        return sum(self._seconds) / len(self._seconds) if self._seconds else usual

    def _write_summary(self, *, complete: bool) -> RunSummary:
        summary = summary_of(
            self._folder.run,
            self._plan,
            self._cells,
            self._trials,
            complete=complete,
            environment=self._environment,
            limits=self._limits,
            resumed=self._resumed,
        )
        self._folder.write_summary(summary)
        return summary

    def _begin(self, name: str, kind: Literal["pilot", "limit", "trial"], cells: Sequence[Cell] = ()) -> None:
        self._step += 1
        mean = self._trial_seconds()
        pilots_left = max(len(self._places) + 1 - self._step, 0)
        before_trials = len(self._places) + len(self._limit_jobs)
        trials_left = self._steps - max(self._step - 1, before_trials)
        pilots = pilots_left * (3 * self._plan.drain.pilot_seconds + OVERHEAD_SECONDS / 2)
        limits_left = min(max(before_trials + 1 - self._step, 0), len(self._limit_jobs))
        left = trials_left * mean + pilots + limits_left * LIMIT_SECONDS
        if self._deadline is not None:
            left = min(left, max(self._deadline - time.monotonic(), 0.0))
        self._ui.step(Step(self._step, self._steps, name, kind, tuple(cell.key for cell in cells), left))

    def _pilots(self) -> None:
        """A short look at every cell, which warms up the workers and tells how many records its trials need."""
        drain = self._plan.drain
        wanted = int(2 * drain.pilot_seconds * PILOT_RECORDS_PER_SECOND)
        records = max(min(wanted, PILOT_BYTES // self._plan.load.record_bytes), MINIMUM_RECORDS)
        shared = Names.of(f"{self._token}_pilot")
        try:
            self._bench.check_disk(records)
            self._ui.phase("loading the pilots' topic")
            loaded = self._bench.load(shared, records, lambda done: self._ui.progress(done, records))
            self._calibrate(loaded.records_per_second)
            for number, cell in enumerate(self._places, start=1):
                self._begin(
                    f"pilot of {cell.place}", "pilot", [each for each in self._cells if each.place == cell.place]
                )
                self._ui.phase("pilot")
                names = Names(shared.trial, shared.topic, f"{shared.connector}_{number}")
                with self._cleaning(cell, names, topic=False):
                    found = pilot(self._bench, cell, names, records, self._ui)
                    self._recover()
                    # Now that it has an index, or a table, as all trials will have.
                    settings = self._bench.sink(cell.sink).settings(names.target)
                    self._learn(with_sink(self._environment, cell.sink, settings))
                if found.records_per_second is None:
                    self._ui.say(f"pilot of {cell.place}: {found.problem}")
                else:
                    self._rates[cell.place] = found.records_per_second
                    self._ui.say(f"pilot of {cell.place}: about {found.records_per_second:,.0f} records/s")
        finally:
            self._bench.kafka.delete_topic(shared.topic)

    def _learn(self, environment: dict[str, JsonValue]) -> None:
        """Takes down how a sink is set; raises ResultsError if kept trials found it set otherwise."""
        found = environment_differences(self._environment, environment) if self._resumed else []
        if changed := [each.in_words for each in found if each.a != ABSENT]:
            raise ResultsError(
                f"{self._folder.path}: cannot be resumed; {'; '.join(changed)}; undo that, or race again"
            )
        self._environment = environment

    def _calibrate(self, records_per_second: float) -> None:
        """Takes down what the generator makes while nothing else runs, as it did for the pilots' topic."""
        if self._plan.drains or any(limit.sink == GENERATOR for limit in self._limits):
            return
        limit = Limit(sink=GENERATOR, way="loadgen", records_per_second=round(records_per_second, 1))
        self._keep_limit(limit)
        for cell in self._cells:
            if cell.offered is not None and cell.offered > records_per_second:
                self._ui.say(f"{cell.key}: is more than the generator makes; its trials will be invalid")

    def _measure_limits(self) -> None:
        """What Kafka, Connect and the sinks can do alone, now that they are warm; see `sinkbench.limits`."""
        for job in self._limit_jobs:
            self._begin(job.name, "limit")
            self._keep_limit(job.run(self._ui))
            self._recover()

    def _keep_limit(self, limit: Limit) -> None:
        self._limits.append(limit)
        self._write_summary(complete=False)
        self._ui.say(limit_line(limit))

    def _drain(self, cell: Cell, block: int, name: str) -> None:
        for retakes_left in range(MOST_RETAKES, -1, -1):
            record = self._drain_of_size(cell, block, name, is_too_short if retakes_left else lambda record: False)
            if not record.pilot:
                break
            self._retaken += 1
            # Of so short a drain much was the start; the rate is higher than that.
            seen = record.records / (record.window_seconds or self._plan.drain.window_seconds)
            self._rates[cell.place] = max(seen, RETAKE_FACTOR * self._rates.get(cell.place, 0.0))
            self._ui.say(f"{cell.key}: sized by too low a rate; once more, with more records")
        if record.records_per_second and not record.invalid and cell.before is None:
            # The workers' JVMs get faster for a while; the next trial is sized by what was seen last.
            self._rates[cell.place] = record.records_per_second

    def _drain_of_size(self, cell: Cell, block: int, name: str, is_pilot: Callable[[TrialRecord], bool]) -> TrialRecord:
        """Takes a drain trial of as many records as fill the window at the rate that the cell had last."""
        rate = self._rates.get(cell.place, FALLBACK_RECORDS_PER_SECOND)
        # A drain in which the tasks change is as long before that as after it.
        seconds = self._plan.drain.window_seconds * (1 if cell.before is None else 2)
        records = max(records_for(rate, seconds), MINIMUM_RECORDS)

        def take(names: Names) -> tuple[TrialRecord, list[Sample]]:
            record, samples = drain_trial(self._bench, cell, names, records, block, self._ui)
            return record.model_copy(update={"pilot": is_pilot(record)}), samples

        return self._trial(cell, name, take)

    def _sustain(self, cell: Cell, block: int, name: str, rate: float, *, search: bool = False) -> TrialRecord:
        return self._trial(
            cell, name, lambda names: sustain_trial(self._bench, cell, names, rate, block, self._ui, search=search)
        )

    def _search(self, cell: Cell) -> None:
        """Searches the highest rate that a cell sustains, from a little below what its pilot drained."""
        if cell.key not in self._searches:
            start = START_SHARE * self._rates.get(cell.place, FALLBACK_RECORDS_PER_SECOND)
            self._searches[cell.key] = new_search(self._plan, start, self._limits)
        search = self._searches[cell.key]
        while (offer := search.next()) is not None:
            rate = offer.records_per_second
            what = "confirming" if offer.confirms else "searching at"
            name = f"{cell.key}, {what} {rate:,.0f} records/s"
            feed(search, self._sustain(cell, block_of(search), name, rate, search=not offer.confirms))
            self._searched += 1
        found = search.problem if search.capacity is None else f"{search.capacity:,.0f} records/s confirmed"
        self._ui.say(f"{cell.key}: {found}")

    def _trial(self, cell: Cell, name: str, take: Callable[[Names], tuple[TrialRecord, list[Sample]]]) -> TrialRecord:
        """Takes one trial, keeps what came of it, and removes what it has created."""
        self._begin(name, "trial", [cell])
        started = time.monotonic()
        names = Names.of(f"{self._token}_{self._step:03d}")
        with self._cleaning(cell, names):
            record, samples = take(names)
            relative = self._folder.write_samples(names.trial, [sample.row() for sample in samples])
            record = record.model_copy(update={"samples": relative})
            self._folder.append_trial(record)
            self._trials.append(record)
            self._ui.phase("cleaning up")
            self._recover()
        self._write_summary(complete=False)
        self._seconds.append(time.monotonic() - started)
        self._ui.ended(record)
        return record

    @contextmanager
    def _cleaning(self, cell: Cell, names: Names, *, topic: bool = True) -> Iterator[None]:
        """Removes what a trial has created, however it ends; a failure of that does not hide why it ended."""
        try:
            yield
        except BaseException:
            with suppress(*CLIENT_ERRORS):
                self._bench.clean(cell, names, topic=topic)
            raise
        self._bench.clean(cell, names, topic=topic)

    def _await(self, dead: list[str]) -> None:
        """Gives services that are not ours to start some time to come back; without them the next step says why."""
        self._ui.say(f"{' and '.join(dead)} did not answer; waiting up to {RETURN_SECONDS:.0f} s")
        deadline = time.monotonic() + RETURN_SECONDS
        while time.monotonic() < deadline:
            if all(state.state == "running" for state in self._bench.stack.states()):
                return
            time.sleep(1)

    def _recover(self) -> None:
        """Starts again what has died during a trial, so that the next one finds a whole stack."""
        dead = [state.name for state in self._bench.stack.states() if state.state != "running"]
        if not dead:
            return
        if self._bench.stack.endpoints.shared:
            self._await(dead)
            self._bench.reconnect()
            return
        self._ui.say(f"starting {' and '.join(dead)} again")
        self._bench.stack.up(self._ui.phase)
        self._bench.reconnect()


def _token_beside(trials: Sequence[TrialRecord]) -> str:
    """What the names of a run's trials begin with: another one in every run, and each time that it is taken up again.

    Short, so that it fits into the name of an index or a table.
    """
    used = {trial.trial.partition("_")[0] for trial in trials}
    while (token := secrets.token_hex(3)) in used:
        pass
    return token
