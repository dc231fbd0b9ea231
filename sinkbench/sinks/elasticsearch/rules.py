"""Rules for bottlenecks within Elasticsearch, as in `bottleneck.rules`."""

from __future__ import annotations

from sinkbench.analysis.words import percent
from sinkbench.bottleneck.evidence import Evidence
from sinkbench.bottleneck.rules import Finding, Rule, may_be_sink

REFRESHING = 0.3
THROTTLED = 0.1
PRESSED = 0.8


def write_queue(seen: Evidence) -> Finding | None:
    """Elasticsearch rejects writes, queues more than there are tasks, or uses 80 % of its memory for unfinished writes.
    A rejection alone is enough: the connector must retry, or loses the records.
    """
    rejected = seen.rises.get("es_write_rejected", 0.0) * seen.seconds
    queue, tasks = seen.levels.get("es_write_queue", 0.0), max(seen.around.tasks, 1)
    held, most = seen.levels.get("es_pressure_bytes"), seen.levels.get("es_pressure_limit_bytes")
    pressed = held / most if held is not None and most else 0.0
    if rejected < 0.5 and queue < tasks and pressed < PRESSED:
        return None
    text = f"{rejected:,.0f} writes rejected, {queue:.1f} queued, {percent(pressed)} of its memory for writes in use"
    return Finding("elasticsearch", "write queue", text, 1.0)


def merges_throttle(seen: Evidence) -> Finding | None:
    """Elasticsearch throttles indexing 10 % of the time, since merges of segments do not keep up."""
    share = seen.rises.get("es_indexing_throttled_seconds")
    if share is None or share < THROTTLED:
        return None
    return Finding("elasticsearch", "merges", f"indexing held back for merges {percent(share)} of the time", share)


def refreshes(seen: Evidence) -> Finding | None:
    """A shard refreshes 30 % of the time or more: `refresh_interval` is too short."""
    share = seen.rises.get("es_refresh_seconds")
    if share is None or share < REFRESHING or not may_be_sink(seen):
        return None
    return Finding("elasticsearch", "refreshes", f"refreshing {percent(share)} of the time", min(share, 1.0))


RULES: tuple[Rule, ...] = (write_queue, merges_throttle, refreshes)
