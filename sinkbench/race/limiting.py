"""Measures the limits of a run: searched before the first block, then measured in each block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sinkbench.limits.measure import jobs
from sinkbench.live.events import Events
from sinkbench.plan.schedule import BlockLeft, LimitOf, are_in_blocks
from sinkbench.race.journal import Journal
from sinkbench.results import LimitInBlock
from sinkbench.tables.lines import limit_in_block_line, limit_line
from sinkbench.trial.cluster import Cluster


class Limits:
    """The limits of Kafka, Connect and the sinks alone, measured on warm services; see `sinkbench.limits`."""

    def __init__(self, cluster: Cluster, journal: Journal, events: Events) -> None:
        self._plan = cluster.plan
        self._journal = journal
        self._events = events
        wanted = jobs(cluster, journal.cells, journal.token) if cluster.plan.limits else []
        self._jobs = {LimitOf(job.sink, job.way): job for job in wanted}
        searched = {(limit.sink, limit.way) for limit in journal.limits}
        self._unsearched = [job for of, job in self._jobs.items() if of not in searched]

    @property
    def searches_left(self) -> int:
        return len(self._unsearched)

    def in_blocks_left(self, blocks: Sequence[BlockLeft]) -> int:
        """Number of measurements left in these blocks, as far as known before the search."""
        unsearched = sum(job.again is not None for job in self._unsearched) if are_in_blocks(self._plan) else 0
        return sum(len(block.limits) + unsearched for block in blocks)

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
        most_compiling = self._plan.drain.compiling_percent / 100
        found = self._jobs[of].in_block(limit, block, most_compiling, self._events)
        if recover() and found.problem is None:
            found = LimitInBlock(block=block, problem="a service died meanwhile")
        self._journal.add_to_limit(limit, found)
        self._events.say(limit_in_block_line(limit, found))

    def name(self, of: LimitOf) -> str:
        """For progress messages: `limit of postgres by COPY`."""
        return self._jobs[of].name
