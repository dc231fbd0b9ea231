"""A run: all trials of a plan on one stack, in blocks, into one folder."""

import time
from collections.abc import Sequence
from typing import Literal

from sinkbench.errors import ServiceError, StackError, TrialFailed
from sinkbench.live.events import Events, RunStep
from sinkbench.plan import schedule
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import CapacityPlan
from sinkbench.plan.sizing import USUAL_SEARCH_STEPS, Sizes, StepsLeft, is_too_short, least_records, seconds_left
from sinkbench.race.leftovers import note_run
from sinkbench.race.pilots import Limits, Pilots, recover
from sinkbench.race.profiles import PROFILE_SECONDS, profiles_of
from sinkbench.race.replacing import all_cells_left, replacements, replacing, why_replaced, windows_for
from sinkbench.race.resume import Journal
from sinkbench.results import RunSummary, TrialRecord
from sinkbench.services.failures import in_one_line
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names, cleaning
from sinkbench.trial.resources import Resources
from sinkbench.trial.trial import run_trial
from sinkbench.trial.workload import Workload
from sinkbench.trial.workloads.drain import Drain, LiveRescale
from sinkbench.trial.workloads.fault import Fault
from sinkbench.trial.workloads.sustain import Sustain, records_offered

# A search begins below the drain rate: a pipeline that waits for records is not faster.
START_SHARE = 0.8
MOST_RETAKES = 3


class Race:
    def __init__(self, cluster: Cluster, journal: Journal, ui: Events, seconds: float | None = None) -> None:
        """Begins no block that would end after `seconds`. Raises ValueError if its trials do not match the plan."""
        plan, cells, trials, limits = cluster.plan, journal.cells, journal.trials, journal.limits
        self._cluster = cluster
        self._plan = plan
        self._journal = journal
        self._ui = ui
        self._sizes = Sizes(plan.drain, least_records(cluster.record_bytes), cluster.record_bytes)
        self._numbered = 0
        self._cold = False
        self._cells_left = all_cells_left(plan, cells, trials, limits)
        # Cells that differ only in the offered rate share a pilot.
        self._pilots_left = len({cell.place for cell in self._cells_left})
        self._warm_up_left = self._pilots_left * plan.drain.warm_up_seconds
        self._limits = Limits(cluster, journal, ui, self._sizes.rate)
        self._searches = schedule.searches_of(plan, cells, trials, limits)
        self._replacements_left: int | None = None
        # How many trials a search takes is not known.
        self._trials = 0 if isinstance(plan, CapacityPlan) else plan.most_blocks * len(cells)
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def run(self) -> RunSummary:
        """Takes the remaining pilots and trials; returns the summary.

        The folder has a summary at any time. A trial's objects are removed however the run ends."""
        journal = self._journal
        note_run(self._cluster.stack, journal.token)
        trials = None if isinstance(self._plan, CapacityPlan) else self._plan.most_blocks
        name = journal.folder.run
        self._ui.begin(name, [cell.key for cell in journal.cells], trials, journal.trials)
        kept = f"going on with {name}: {len(journal.trials)} trials are kept"
        self._ui.say(kept if journal.resumed else f"run {name}; Ctrl-C keeps the trials that are finished")
        try:
            self._ui.judged(journal.write(complete=False))
            self._take_pilots(self._cells_left)
            self._limits.search(lambda name: self._begin(name, "limit"), self._recover)
            if isinstance(self._plan, CapacityPlan):
                self._take_searches(self._plan)
            else:
                self._take_blocks()
                self._replace_trials()
            self._take_profiles()
        except BaseException:
            journal.write(complete=False)
            raise
        return journal.write(complete=True)

    def _take_pilots(self, cells: Sequence[Cell]) -> None:
        places = list({cell.place: cell for cell in cells}.values())

        def begin(cell: Cell, left: int, seconds: float) -> None:
            same_place = [each for each in self._journal.cells if each.place == cell.place]
            self._pilots_left, self._warm_up_left = left, seconds
            self._begin(f"warming up {cell.place}", "pilot", same_place)

        for cluster in self._cluster.all:
            if own := [cell for cell in places if self._cluster.of(cell) is cluster]:
                Pilots(cluster, self._journal, self._ui).take(own, self._sizes, begin)
        self._pilots_left, self._warm_up_left = 0, 0.0

    def _blocks_left(self) -> list[schedule.BlockLeft]:
        journal = self._journal
        if isinstance(self._plan, CapacityPlan):
            return []
        return schedule.blocks_left(self._plan, journal.cells, journal.trials, journal.limits)

    def _take_blocks(self) -> None:
        at_most = "" if self._plan.most_blocks == self._plan.trials and self._deadline is None else "at most "
        most = f"{at_most}{self._plan.most_blocks}"
        while (blocks := self._blocks_left()) and not self._is_over(blocks[0]):
            number, step = blocks[0].number, blocks[0].steps[0]
            if isinstance(step, Cell):
                self._warm_up_again(step)
                self._take_cell(step, number, f"{step.key}, trial {number} of {most}")
                continue
            self._warm_up_again(next(filter(step.needs, self._journal.cells)))
            self._begin(f"{self._limits.jobs[step].name}, block {number} of {most}", "limit")
            self._limits.measure(step, number, self._recover)

    def _replace_trials(self) -> None:
        journal = self._journal
        while block := replacements(self._plan, journal.cells, journal.trials):
            self._replacements_left = len(block)
            if self._is_late(len(block)):
                return
            number = 1 + max(self._plan.most_blocks, *(trial.block for trial in journal.trials))
            for cell, old in block:
                why = "" if old is None else f" in place of one that {why_replaced(old)}"
                self._warm_up_again(cell)
                self._take_cell(cell, number, f"{cell.key}, another trial{why}", old)
                self._replacements_left -= 1

    def _is_late(self, trials: int, limits: int = 0) -> bool:
        """Whether so many more steps would end after the deadline, if there is one."""
        left = seconds_left(self._plan, StepsLeft(0, 0, trials, limits), self._journal.seconds)
        return self._deadline is not None and time.monotonic() + left > self._deadline

    def _is_over(self, block: schedule.BlockLeft) -> bool:
        """Whether to skip this block. Only whole blocks are taken, so that ratios have both of their trials."""
        if self._deadline is not None and block.number > 1:
            return not block.begun and self._is_late(len(self._journal.cells), len(block.limits))
        return schedule.is_over(self._plan, self._journal.cells, self._journal.trials, block)

    def _take_cell(self, cell: Cell, block: int, name: str, replaced: TrialRecord | None = None) -> None:
        windows = windows_for(replaced, self._plan.drain.window_seconds)
        for retakes_left in range(MOST_RETAKES, -1, -1):
            workload, own = self._work(cell, windows)
            retake = isinstance(workload, Drain) and retakes_left > 0
            record = self._take(own, workload, block, name, retake=retake, replaced=replaced)
            if isinstance(workload, Drain):
                self._sizes.see(cell, record)
            if not record.pilot:
                return
            self._ui.say(f"{cell.key}: sized by too low a rate; once more, with more records")

    def _work(self, cell: Cell, windows: float) -> tuple[Workload, Resources]:
        """The workload of the cell's next trial; a drain lasts so many windows."""
        if cell.fault is None and cell.offered is None:
            drain = Drain() if cell.before is None else LiveRescale()
            return drain, self._resources(cell, self._sizes.records(cell, windows))
        offered = cell.offered or 0.0
        of_load = Sustain(offered) if cell.fault is None else Fault(cell.offered, cell.fault)
        return of_load, self._resources(cell, cell.backlog or records_offered(self._plan, offered))

    def _take_profiles(self) -> None:
        """Takes those that are missing. A fault ends what is recorded; a capacity is profiled by a drain."""
        journal = self._journal
        if not self._plan.profile:
            return
        done = {each.cell for each in journal.profiles}
        for cell in (each for each in journal.cells if each.fault is None and each.key not in done):
            self._begin(f"profiling {cell.key}", "pilot", [cell])
            workload, own = self._work(cell, PROFILE_SECONDS / self._plan.drain.window_seconds)
            with cleaning(own.remove, self._recover):
                try:
                    journal.profiles += profiles_of(own, workload, journal.folder.path)
                except StackError as failed:
                    self._ui.say(f"no profile of {cell.key}: {failed}")
            journal.write(complete=False)

    def _take_searches(self, plan: CapacityPlan) -> None:
        for cell in (cell for cell in self._cells_left if cell.of_capacity is None):
            if (search := self._searches.get(cell.key)) is None:
                start = START_SHARE * self._sizes.rate(cell)
                search = self._searches[cell.key] = schedule.new_search(plan, start, self._journal.limits)
            self._take_search(cell, search)
        for cell, block, rate in schedule.shares_left(plan, self._journal.cells, self._journal.trials, self._searches):
            self._warm_up_again(cell)
            name = f"{cell.key}, {rate:,.0f} records/s, trial {block} of {plan.trials}"
            self._take(self._resources(cell, records_offered(plan, rate)), Sustain(rate), block, name)

    def _take_search(self, cell: Cell, search: schedule.CapacitySearch) -> None:
        while (offer := search.next()) is not None:
            rate = offer.records_per_second
            what = "confirming" if offer.confirms else "searching at"
            name = f"{cell.key}, {what} {rate:,.0f} records/s"
            self._warm_up_again(cell)
            own = self._resources(cell, records_offered(self._plan, rate))
            load = Sustain(rate, search=not offer.confirms)
            schedule.feed(search, self._take(own, load, schedule.block_of(search), name))
        found = search.problem if search.capacity is None else f"{search.capacity:,.0f} records/s confirmed"
        self._ui.say(f"{cell.key}: {found}")

    def _resources(self, cell: Cell, records: int) -> Resources:
        """Resources of the next trial. Pilots do not count in the numbering."""
        self._numbered += 1
        names = Names.of(f"{self._journal.token}_{self._numbered:03d}")
        return Resources(self._cluster.of(cell), cell, names, records, self._ui)

    def _take(
        self,
        own: Resources,
        workload: Workload,
        block: int,
        name: str,
        *,
        retake: bool = False,
        replaced: TrialRecord | None = None,
    ) -> TrialRecord:
        """Takes a trial and stores its record; with `retake`, a trial that was too short as a pilot."""
        self._begin(name, "trial", [own.cell])
        started = time.monotonic()
        with cleaning(own.remove, self._recover):
            record, samples = run_trial(own, workload, block, self._recover)
            if retake and is_too_short(record, self._plan.drain.window_seconds):
                record = record.model_copy(update={"pilot": True})
            elif replaced is not None:
                record = replacing(record, replaced)
            record = self._journal.add_trial(record, samples)
            self._ui.phase("cleaning up")
            self._recover()
        self._journal.seconds.append(time.monotonic() - started)
        self._ui.judged(self._journal.write(complete=False))
        self._ui.ended(record)
        return record

    def _recover(self) -> bool:
        """Restarts dead services, which are cold until the next pilot. Returns whether any was dead."""
        died = True in [recover(cluster, self._ui) for cluster in self._cluster.all]
        self._cold |= died
        return died

    def _warm_up_again(self, cell: Cell) -> None:
        """Takes pilots of the next trial's cell if a service was restarted."""
        if not self._cold:
            return
        self._cold = False
        try:
            self._take_pilots([cell])
        except (TrialFailed, ServiceError, OSError) as failed:
            self._ui.say(f"pilot of {cell.place}: {in_one_line(failed)}")
            self._recover()

    def _begin(self, name: str, kind: Literal["pilot", "limit", "trial"], cells: Sequence[Cell] = ()) -> None:
        blocks = self._blocks_left() if self._replacements_left is None else []
        searches, in_blocks = self._limits.searches_left, self._limits.in_blocks_left(blocks)
        left = StepsLeft(self._pilots_left, searches, self._trials_left(blocks), in_blocks, self._warm_up_left)
        seconds = seconds_left(self._plan, left, self._journal.seconds)
        if self._deadline is not None:
            seconds = min(seconds, max(self._deadline - time.monotonic(), 0.0))
        # Trials alone are counted, without those that replace another, so that the total does not move.
        counted = self._trials and kind == "trial" and self._replacements_left is None
        number = self._trials - self._trials_left(blocks) + 1 if counted else 0
        self._ui.step(RunStep(number, self._trials, name, kind, tuple(cell.key for cell in cells), seconds))

    def _trials_left(self, blocks: Sequence[schedule.BlockLeft]) -> int:
        """Number of trials left; an estimate for a search."""
        if not isinstance(self._plan, CapacityPlan):
            return self._replacements_left or sum(len(block.cells) for block in blocks)
        usual = USUAL_SEARCH_STEPS + self._plan.trials
        begun = sum(max(usual - len(each.path), 1) for each in self._searches.values() if each.next() is not None)
        searched = [cell for cell in self._cells_left if cell.of_capacity is None and cell.key not in self._searches]
        shares = self._plan.trials * sum(cell.of_capacity is not None for cell in self._journal.cells)
        taken = sum(trial.of_capacity is not None for trial in self._journal.trials)
        return begun + usual * len(searched) + shares - taken
