"""How far a connector has read, how fast it goes on, and where it does not. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sinkbench.analysis.words import counted, few_of, in_time

# Connect commits offsets every 60 s by default.
WATCH_SECONDS = 65.0

Partition = tuple[str, int]


class Offsets(NamedTuple):
    """That of a partition's first record, the one that the group has committed (0: none), and its end."""

    first: int
    committed: int
    end: int

    @property
    def at(self) -> int:
        """The record that is read next, by a group that begins with the oldest."""
        return max(self.committed, self.first)

    @property
    def unread(self) -> int:
        return max(self.end - self.at, 0)


Reading = tuple[float, Mapping[Partition, Offsets]]
"""Seconds since the first reading, and what was read."""


@dataclass(frozen=True)
class Progress:
    """Readings of a connector's group, at least one. `waited` is for how many seconds the oldest unread record has been
    in its topic, `kept` for how many Kafka keeps one, `record_bytes` the mean size of a value; None is unknown."""

    readings: Sequence[Reading]
    waited: float | None = None
    kept: float | None = None
    record_bytes: float | None = None

    @property
    def unread(self) -> dict[Partition, int]:
        """The unread records of each partition that has some, the most first."""
        counts = {partition: each.unread for partition, each in self.readings[-1][1].items() if each.unread}
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    @property
    def still(self) -> list[Partition]:
        """The partitions in which records were unread all the time, and nothing was committed."""
        first, last = self.readings[0][1], self.readings[-1][1]
        return [p for p in self.unread if p in first and first[p].unread and first[p].committed == last[p].committed]

    @property
    def stands_still(self) -> bool:
        return bool(self.still) and self.readings[-1][0] >= WATCH_SECONDS

    @property
    def is_clear(self) -> bool:
        """Whether further readings would tell nothing new: nothing is unread, or every partition goes on."""
        return not self.unread or (not self.still and len(self._commits) > 1)

    @property
    def _commits(self) -> list[Reading]:
        sums = [sum(each.at for each in offsets.values()) for _, offsets in self.readings]
        return [each for each, before, now in zip(self.readings[1:], sums, sums[1:], strict=False) if now != before]

    @property
    def rates(self) -> tuple[float, float] | None:
        """Records a second that are read, and that arrive; None with one reading. From a commit to a later one if there
        were two, since each is of what was read for a while."""
        seen = self._commits if len(self._commits) > 1 else self.readings
        (begin, before), (end, after) = seen[0], seen[-1]
        if end == begin:
            return None
        those = [(each, after[partition]) for partition, each in before.items() if partition in after]
        read, came = sum(new.at - old.at for old, new in those), sum(new.end - old.end for old, new in those)
        return read / (end - begin), came / (end - begin)

    @property
    def eaten_in(self) -> float | None:
        """Seconds until Kafka deletes what is not read yet, if both rates stay as they are; None: never, or unknown."""
        if self.rates is None or self.waited is None or self.kept is None or self.rates[0] >= self.rates[1]:
            return None
        # In a second what was written in `read / came` seconds is read.
        return max(self.kept - self.waited, 0.0) / (1 - self.rates[0] / self.rates[1])

    def lines(self) -> Iterator[str]:
        unread = self.unread
        most = few_of([f"{name}-{number} {count:,}" for (name, number), count in unread.items()], 4)
        waited = "" if self.waited is None else f"; the next one was written {in_time(self.waited)} ago"
        yield f"unread: {counted(sum(unread.values()), 'record')}" + (f" ({most}){waited}" if unread else "")
        if self.rates is not None:
            yield "now: {:,.0f} records/s are read, {:,.0f} records/s arrive".format(*self.rates)
