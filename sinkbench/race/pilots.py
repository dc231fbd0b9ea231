"""What a run measures besides trials: limits, and pilots, which warm up every cell; and restarts of dead services."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from loadgen.forms import Form
from sinkbench.analysis.limits import GENERATOR, KAFKA_ALONE
from sinkbench.analysis.words import counted
from sinkbench.errors import ServiceError
from sinkbench.limits.kafka import kafka_jobs
from sinkbench.limits.measure import jobs
from sinkbench.live.events import Events
from sinkbench.plan.cells import Cell
from sinkbench.plan.schedule import BlockLeft, LimitOf, are_in_blocks
from sinkbench.plan.sizing import Sizes, least_records
from sinkbench.race.resume import Journal
from sinkbench.results import Limit, LimitInBlock
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import SinkSettings
from sinkbench.tables.lines import limit_in_block_line, limit_line
from sinkbench.trial.cluster import Cluster, read_until
from sinkbench.trial.following import out_of_memory
from sinkbench.trial.names import Names, cleaning
from sinkbench.trial.resources import Resources
from sinkbench.trial.workloads.drain import Pilot, take_pilot

# A pilot's topic must last for its time at the highest possible rate,
PILOT_RECORDS_PER_SECOND = 100_000
# but large records must not fill the disk.
PILOT_BYTES = 600_000_000
# How long a run waits for the restart of a service that it does not manage.
RETURN_SECONDS = 60.0
# Rates of two visits that differ by less are equal.
STEADY = 1.15
# The slower a pipeline, the longer it takes until its code is hot.
MORE_FOR_THE_SLOWEST = 1.5
# JVMs with at most this compiling share at the first visit were warm before.
WARM_AT_ONCE = 0.1


def recover(cluster: Cluster, events: Events) -> bool:
    """Restarts dead services, or waits until others restart them, and reconnects. Returns whether any was dead."""
    if not (dead := cluster.stack.dead()):
        return False
    if cluster.stack.endpoints.shared:
        events.say(f"{' and '.join(dead)} did not answer; waiting up to {RETURN_SECONDS:.0f} s")
        read_until(lambda dead: not dead, cluster.stack.dead, RETURN_SECONDS)
    else:
        events.say(f"starting {' and '.join(dead)} again")
        try:
            cluster.stack.up(events.phase)
        except ServiceError as error:
            # Another one may have died meanwhile.
            events.say(f"{in_one_line(error)}; once more")
            cluster.stack.up(events.phase)
    cluster.reconnect()
    return True


class Pilots:
    """Warm up the workers, measure the rates that size trials, and read the settings of the sinks."""

    def __init__(self, cluster: Cluster, journal: Journal, events: Events) -> None:
        self._cluster = cluster
        self._journal = journal
        self._events = events
        self._taken = 0
        # A topic per form, with its number of records; all stay until the last pilot.
        self._shared: dict[Form, tuple[Names, int]] = {}

    def take(self, cells: Sequence[Cell], sizes: Sizes, begin: Callable[[Cell, int, float], None]) -> None:
        """Visits the cells, one of each place, in rounds until each is warm or the plan's time is spent.

        `sizes` gets the rates; `begin` a cell, the pilots left in this round, and the seconds left for all rounds."""
        with cleaning(self._remove_topics, self._recover):
            for form in dict.fromkeys(cell.form for cell in cells):
                self._load(form)
            visits: dict[str, list[Pilot]] = {cell.place: [] for cell in cells}
            drain = self._cluster.plan.drain
            # Minimum time for a useful pilot.
            least = 2 * drain.pilot_seconds
            deadline = time.monotonic() + drain.warm_up_seconds * len(cells)
            # Short first visits load the classes of all pipelines, for which JVMs compile again what was hot before.
            longest = least
            waiting = list(cells)
            while waiting and (not any(visits.values()) or deadline - time.monotonic() > least):
                for place, cell in enumerate(waiting):
                    left = deadline - time.monotonic()
                    # Each cell is visited once, or it has no rate.
                    if left > least or not visits[cell.place]:
                        begin(cell, len(waiting) - place, max(left, 0.0))
                        seconds = min(longest, share_of(left, len(waiting) - place, least))
                        visits[cell.place].append(self._take(cell, sizes, seconds))
                longest = math.inf
                waiting = [each for each in waiting if not is_warm(visits[each.place], drain.compiling_percent / 100)]
                # The time may not suffice for all.
                waiting.sort(key=lambda cell: visits[cell.place][-1].records_per_second or 0.0)
            if waiting:
                still = f"{len(waiting)} of {counted(len(cells), 'pipeline')} not warm yet; the trials go on with it"
                self._events.say(f"warming up takes longer here: {still}")

    def _remove_topics(self) -> None:
        for form, (names, _) in list(self._shared.items()):
            self._cluster.kafka.delete_topic(names.topic)
            del self._shared[form]

    def _recover(self) -> bool:
        if (said := out_of_memory(self._cluster.stack)) is not None:
            self._events.say(said)
        return recover(self._cluster, self._events)

    def _load(self, form: Form) -> None:
        size, before = self._cluster.value_bytes(form), len(self._shared)
        wanted = int(2 * self._cluster.plan.drain.pilot_seconds * PILOT_RECORDS_PER_SECOND)
        records = max(min(wanted, int(PILOT_BYTES / size)), least_records(size))
        names = Names.of(f"{self._journal.token}_pilot{f'_{before + 1}' if before else ''}")
        self._cluster.check_disk(records, form=form)
        self._events.phase("loading the pilots' topic")
        self._shared[form] = names, records
        loaded = self._cluster.load(names, records, lambda done: self._events.progress(done, records), {"form": form})
        self._calibrate(loaded.records_per_second)

    def _take(self, cell: Cell, sizes: Sizes, seconds_left: float) -> Pilot:
        self._events.phase("pilot")
        self._taken += 1
        shared, records = self._shared[cell.form]
        names = Names(shared.trial, shared.topic, f"{shared.connector}-{self._taken}")
        # Filling the rows before would take longer than the pilot.
        own = Resources(self._cluster, replace(cell, rows_before=0), names, records, self._events)
        with cleaning(lambda: own.remove(topic=False), self._recover):
            found = take_pilot(own, seconds_left)
            # A JVM whose heap is nearly full makes no progress for long before it dies.
            died = out_of_memory(self._cluster.stack)
            recover(self._cluster, self._events)
            # The index or table exists now, as in all trials.
            self._journal.add_sink(cell.sink, _but_set(self._cluster.sink(cell.sink).settings(names.target, {}), cell))
        if died is not None or found.records_per_second is None:
            self._events.say(f"pilot of {cell.place}: {died or found.problem}")
        if found.records_per_second is not None:
            sizes.learn(cell.place, found.records_per_second)
        return found

    def _calibrate(self, records_per_second: float) -> None:
        """Stores the generator's rate for the pilots' topic, while nothing else runs."""
        if self._cluster.plan.drains or any(limit.sink == GENERATOR for limit in self._journal.limits):
            return
        limit = Limit(sink=GENERATOR, way="loadgen", records_per_second=round(records_per_second, 1))
        self._journal.add_limit(limit)
        self._events.say(limit_line(limit))
        for cell in self._journal.cells:
            if cell.offered is not None and cell.offered > records_per_second:
                self._events.say(f"{cell.key}: is more than the generator makes; its trials will be invalid")


def _but_set(found: SinkSettings, cell: Cell) -> SinkSettings:
    own = {name for given in cell.settings.values() for name in given}
    durability, tuning = (
        {name: None if name in own else value for name, value in each.items()}
        for each in (found.durability, found.tuning)
    )
    return SinkSettings(durability, tuning)


def share_of(left: float, cells: int, least: float) -> float:
    """How many of the seconds that are `left` for so many cells the next one, the slowest of them, may take at most."""
    return min(left, max(MORE_FOR_THE_SLOWEST * left / cells, least))


def is_warm(visits: Sequence[Pilot], most_compiling: float) -> bool:
    """Whether the JVMs have stopped compiling and the rate does not rise, or they were warm at the first visit.

    A pipeline that stores nothing gets no further visit. `most_compiling` is a share of the CPU time."""
    last, before = visits[-1], visits[-2] if len(visits) > 1 else None
    if last.records_per_second is None:
        return True
    if last.compiling_share is not None and last.compiling_share > most_compiling:
        return False
    if before is None or before.records_per_second is None:
        return last.compiling_share is not None and last.compiling_share <= WARM_AT_ONCE
    return last.records_per_second <= STEADY * before.records_per_second


class Limits:
    """The limits of Kafka, Connect, connectors and sinks alone, on warm services; see `sinkbench.limits`."""

    def __init__(self, cluster: Cluster, journal: Journal, events: Events, rate: Callable[[Cell], float]) -> None:
        """`rate` says at how many records per second a cell's pilot went, when limits are searched."""
        self._plan = cluster.plan
        self._journal = journal
        self._events = events
        wanted = jobs(cluster, journal.cells, journal.token, rate) if cluster.plan.limits else []
        wanted += kafka_jobs(cluster, journal.token)
        self.jobs = {LimitOf(job.sink, job.way): job for job in wanted}
        searched = {(limit.sink, limit.way) for limit in journal.limits}
        self._unsearched = [job for of, job in self.jobs.items() if of not in searched]

    @property
    def searches_left(self) -> int:
        return sum(job.sink != KAFKA_ALONE for job in self._unsearched)

    def in_blocks_left(self, blocks: Sequence[BlockLeft]) -> int:
        """Number of measurements left in these blocks, as far as known before the search."""
        unsearched = sum(job.again is not None for job in self._unsearched) if are_in_blocks(self._plan) else 0
        # A load on Kafka alone is no search: it takes as long as in a block.
        return len(self._unsearched) - self.searches_left + sum(len(block.limits) + unsearched for block in blocks)

    def search(self, begin: Callable[[str], None], recover: Callable[[], bool]) -> None:
        """Searches the missing limits; `begin` gets the name of each, `recover` restarts dead services."""
        while self._unsearched:
            job = self._unsearched[0]
            begin(job.name)
            limit = job.run(self._events)
            self._journal.add_limit(limit)
            self._events.say(limit_line(limit))
            recover()
            self._unsearched.remove(job)

    def measure(self, of: LimitOf, block: int, recover: Callable[[], bool]) -> None:
        limit = next(each for each in self._journal.limits if (each.sink, each.way) == of)
        found = self.jobs[of].in_block(limit, block, self._plan.drain.compiling_percent / 100, self._events)
        if recover() and found.problem is None:
            found = LimitInBlock(block=block, problem="a service died meanwhile")
        self._journal.add_to_limit(limit, found)
        self._events.say(limit_in_block_line(limit, found))
