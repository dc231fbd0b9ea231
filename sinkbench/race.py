"""A run: all trials of a plan on one stack, block by block, into one folder of results."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from pydantic import JsonValue

from sinkbench.bench import Bench, Names
from sinkbench.cells import Cell, blocks
from sinkbench.limits.efficiency import limit_line, with_limits
from sinkbench.limits.measure import jobs
from sinkbench.probes import CLIENT_ERRORS
from sinkbench.results import Limit, PlanRef, RunSummary, TrialRecord
from sinkbench.sizing import MINIMUM_RECORDS, records_for
from sinkbench.store import RunFolder
from sinkbench.summarize import scalings, summarize
from sinkbench.trial import drain_trial, pilot
from sinkbench.ui import Ui, trial_line
from sinkbench.until import is_enough, most_blocks, valid_rates

__all__ = ["Race"]

# A pilot's topic must not run dry before its time is over, at the highest rate that a pipeline may have.
PILOT_RECORDS_PER_SECOND = 100_000
# But large records would fill the disk with what is only a first look.
PILOT_BYTES = 600_000_000
# What a cell is taken to store where its pilot stored nothing; its trials then show the same failure, quickly.
FALLBACK_RECORDS_PER_SECOND = 1_000.0
# Resetting, loading, starting, stopping and auditing, beside the drain itself.
OVERHEAD_SECONDS = 10.0
# Measuring a limit: its search takes some ten steps.
LIMIT_SECONDS = 40.0
# How long a run waits for a service that is not its own to start again.
RETURN_SECONDS = 60.0


class Race:
    """One run of a plan."""

    def __init__(
        self,
        bench: Bench,
        cells: Sequence[Cell],
        folder: RunFolder,
        ui: Ui,
        environment: dict[str, JsonValue],
        seconds: float | None = None,
    ) -> None:
        """
        Args:
            bench: the stack, its clients and the plan, with its seed drawn.
            cells: what to measure, on the stack's workers.
            folder: where results go.
            ui: what a person sees.
            environment: what the summary says of the machine.
            seconds: no block begins that would be expected to end later than so long after the run's start.
        """
        self._bench = bench
        self._plan = bench.plan
        self._cells = cells
        self._folder = folder
        self._ui = ui
        self._environment = environment
        # Short, so that it fits into the name of an index or a table, and another one in every run.
        self._token = secrets.token_hex(3)
        self._rates: dict[str, float] = {}
        self._trials: list[TrialRecord] = []
        self._seconds: list[float] = []
        self._step = 0
        self._limit_jobs = jobs(bench, cells, self._token) if bench.plan.limits else []
        self._limits: list[Limit] = []
        self._most = most_blocks(bench.plan)
        self._deadline = None if seconds is None else time.monotonic() + seconds

    @property
    def _steps(self) -> int:
        return len(self._cells) * (1 + self._most) + len(self._limit_jobs)

    def run(self) -> RunSummary:
        """Takes all pilots and trials.

        Whatever ends it early, what a trial created is removed and a summary of the finished trials written.

        Returns:
            The summary, which is also in the run's folder.
        """
        self._bench.begin(self._token)
        try:
            self._pilots()
            self._measure_limits()
            for number, block in enumerate(blocks(self._cells, self._most, self._plan.seed or 0), start=1):
                if self._is_over(number - 1):
                    break
                for cell in block:
                    self._trial(cell, number)
        except BaseException:
            self._write_summary(complete=False)
            raise
        return self._write_summary(complete=True)

    def _is_over(self, done: int) -> bool:
        """Whether no further block is to be taken; only whole blocks are, so that ratios have both of their trials."""
        if self._deadline is not None and done:
            return time.monotonic() + len(self._cells) * self._trial_seconds() > self._deadline
        rates = valid_rates([cell.key for cell in self._cells], self._trials)
        return is_enough(self._plan, done, rates)

    def _trial_seconds(self) -> float:
        """How long a trial takes: the mean of those so far."""
        usual = self._plan.drain.window_seconds + OVERHEAD_SECONDS
        return sum(self._seconds) / len(self._seconds) if self._seconds else usual

    def _write_summary(self, *, complete: bool) -> RunSummary:
        # With `until` or a deadline only the end tells how many they are.
        trials = max((trial.block for trial in self._trials), default=0) if complete else self._plan.trials
        plan = PlanRef(name=self._plan.name, sha256=self._plan.sha256, seed=self._plan.seed, trials=trials)
        summary = RunSummary(
            run=self._folder.run,
            complete=complete,
            plan=plan,
            environment=self._environment,
            cells=with_limits(summarize(self._cells, self._trials), self._limits),
            limits=self._limits,
            scaling=scalings(self._cells, self._trials),
        )
        self._folder.write_summary(summary)
        return summary

    def _begin(self, name: str) -> None:
        self._step += 1
        mean = self._trial_seconds()
        pilots_left = max(len(self._cells) + 1 - self._step, 0)
        before_trials = len(self._cells) + len(self._limit_jobs)
        trials_left = self._steps - max(self._step - 1, before_trials)
        pilots = pilots_left * (3 * self._plan.drain.pilot_seconds + OVERHEAD_SECONDS / 2)
        limits_left = min(max(before_trials + 1 - self._step, 0), len(self._limit_jobs))
        left = trials_left * mean + pilots + limits_left * LIMIT_SECONDS
        if self._deadline is not None:
            left = min(left, max(self._deadline - time.monotonic(), 0.0))
        self._ui.step(self._step, self._steps, name, left)

    def _pilots(self) -> None:
        """A short look at every cell, which warms up the workers and tells how many records its trials need."""
        drain = self._plan.drain
        wanted = int(2 * drain.pilot_seconds * PILOT_RECORDS_PER_SECOND)
        records = max(min(wanted, PILOT_BYTES // self._plan.load.record_bytes), MINIMUM_RECORDS)
        shared = Names.of(f"{self._token}_pilot")
        try:
            self._bench.check_disk(records)
            self._ui.phase("loading the pilots' topic")
            self._bench.load(shared, records, lambda done: self._ui.progress(done, records))
            for number, cell in enumerate(self._cells, start=1):
                self._begin(f"pilot of {cell.key}")
                self._ui.phase("pilot")
                names = Names(shared.trial, shared.topic, f"{shared.connector}_{number}")
                with self._cleaning(cell, names, topic=False):
                    found = pilot(self._bench, cell, names, records, self._ui)
                    self._recover()
                if found.records_per_second is None:
                    self._ui.say(f"pilot of {cell.key}: {found.problem}")
                else:
                    self._rates[cell.key] = found.records_per_second
                    self._ui.say(f"pilot of {cell.key}: about {found.records_per_second:,.0f} records/s")
        finally:
            self._bench.kafka.delete_topic(shared.topic)

    def _measure_limits(self) -> None:
        """What Kafka, Connect and the sinks can do alone, now that they are warm; see `sinkbench.limits`."""
        for job in self._limit_jobs:
            self._begin(job.name)
            limit = job.run(self._ui)
            self._limits.append(limit)
            self._ui.say(limit_line(limit))
            self._recover()

    def _trial(self, cell: Cell, block: int) -> None:
        at_most = "" if self._plan.until is None and self._deadline is None else "at most "
        self._begin(f"{cell.key}, trial {block} of {at_most}{self._most}")
        started = time.monotonic()
        rate = self._rates.get(cell.key, FALLBACK_RECORDS_PER_SECOND)
        records = max(records_for(rate, self._plan.drain.window_seconds), MINIMUM_RECORDS)
        names = Names.of(f"{self._token}_{self._step:03d}")
        with self._cleaning(cell, names):
            record, samples = drain_trial(self._bench, cell, names, records, block, self._ui)
            relative = self._folder.write_samples(names.trial, [sample.row() for sample in samples])
            record = record.model_copy(update={"samples": relative})
            self._folder.append_trial(record)
            self._trials.append(record)
            self._ui.phase("cleaning up")
            self._recover()
        self._seconds.append(time.monotonic() - started)
        if record.records_per_second and not record.invalid:
            # The workers' JVMs get faster for a while; the next trial is sized by what was seen last.
            self._rates[cell.key] = record.records_per_second
        self._ui.say(trial_line(record))

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
