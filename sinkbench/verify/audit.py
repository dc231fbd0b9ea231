"""An audit of a target that is there already: reads the topic, then the target, and compares."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from sinkbench.errors import StackError, UserError
from sinkbench.services.topics import TopicReader
from sinkbench.sinks import Existing
from sinkbench.suggest import did_you_mean
from sinkbench.verify.content import NO_KEY, By, Extractor
from sinkbench.verify.ledger import Ledger

# They are held in memory, however large they are.
AT_ONCE = 500
HOUR_MS = 3_600_000
Tell = Callable[[str, int, int | None], None]
"""Gets what is read, how much of it so far, and of how much."""


class Audit:
    """Reads both sides into a ledger, from where it stopped, and compares them."""

    def __init__(self, ledger: Ledger, extractor: Extractor, most: float | None, tell: Tell) -> None:
        """`most` is the greatest number of records per second, on average."""
        self._ledger, self._extractor, self._most, self._tell = ledger, extractor, most, tell
        self._at_once = AT_ONCE if most is None else max(1, min(AT_ONCE, int(most)))
        extractor.names.update(ledger.recall("names", []))
        extractor.counts.update(ledger.recall("records", {}))

    def run(self, topic: TopicReader, target: Existing, by: By, *, by_group: bool) -> dict[str, Any]:
        """Reads what was not read yet, and returns the result of `Ledger.compare`. With `by_group` only what the group
        has committed must be stored. Raises UserError if nothing has a key, ServiceError without an answer."""
        ledger, spans = self._ledger, topic.spans()
        parts = ledger.parts()
        if any(spans.get(part, (0, 0))[1] < after for part, (_, _, after) in parts.items()):
            raise StackError(f"{topic.topic}: was made anew since this audit was begun; name another --work")
        if not parts:
            due = topic.committed() if by_group else {part: end for part, (_, end) in spans.items()}
            if not due:
                raise StackError(f"{topic.topic}: --group has committed nothing of it; a connector's is connect-NAME")
            parts = {part: (start, min(end, due.get(part, start)), start) for part, (start, end) in spans.items()}
            ledger.set_parts(parts)
        self._read_topic(topic, {part: due for part, (_, due, _) in parts.items()})
        if ledger.recall("rows") is None:
            self._read_target(target)
        # What came in the meantime may be stored.
        spans = topic.spans()
        self._read_topic(topic, {part: end for part, (_, end) in spans.items()})
        ledger.set_parts({part: (spans[part][0], due, after) for part, (_, due, after) in ledger.parts().items()})
        self._tell("comparison", 0, None)
        return ledger.compare(by)

    def _read_topic(self, topic: TopicReader, ends: Mapping[int, int]) -> None:
        parts, found = self._ledger.parts(), self._extractor
        read = sum(after - start for start, _, after in parts.values())
        total, after = max(read, sum(ends[part] - start for part, (start, _, _) in parts.items())), {}
        spans = {part: (first, ends[part]) for part, (_, _, first) in parts.items()}
        for some in topic.records(spans, self._at_once):
            due = time.monotonic() + (len(some) / self._most if self._most else 0)
            for each in some:
                place, milliseconds = (each.partition(), each.offset()), each.timestamp()[1]
                after[place[0]] = place[1] + 1
                if (entry := found.record(each.key(), each.value(), place)) is not None:
                    self._ledger.add_record(entry, place, milliseconds // HOUR_MS if milliseconds > 0 else -1)
            read += len(some)
            self._next("topic", due, read, total, found)
            self._ledger.save(after, names=sorted(found.names), records=found.counts)
        self._ledger.save(after, now=True, names=sorted(found.names), records=found.counts)

    def _read_target(self, target: Existing) -> None:
        """Reads all rows: a part of them cannot be continued."""
        found, read = self._extractor, 0
        counts, found.counts = found.counts, Counter()
        self._ledger.clear("target")
        for some in target.rows(found.needed, self._at_once):
            due = time.monotonic() + (len(some) / self._most if self._most else 0)
            self._ledger.add_rows(entry for entry in map(found.row, some) if entry is not None)
            read += len(some)
            self._next("target", due, read, None, found)
            self._ledger.save({})
        self._ledger.save({}, now=True, rows=found.counts, added=sorted(found.added))
        found.counts = counts

    def _next(self, what: str, due: float, read: int, total: int | None, found: Extractor) -> None:
        if found.counts[NO_KEY] == read:
            known = did_you_mean(found.place[-1], found.names) if found.place else ""
            raise UserError(f"the {what}: none of {read:,} records has the key{known}")
        self._tell(what, read, total)
        if (early := due - time.monotonic()) > 0:
            time.sleep(early)
