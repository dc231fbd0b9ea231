"""The causes within a sink: functions as in `rules`, for PostgreSQL, PgBouncer and Elasticsearch."""

from __future__ import annotations

from sinkbench.evidence import Evidence
from sinkbench.rules import Finding, percent

__all__ = [
    "lock_waits",
    "merges_throttle",
    "pool_waits",
    "postgres_waits_for_client",
    "postgres_waits_for_disk",
    "refreshes",
    "wal_waits",
    "write_queue",
]

MAY_BE_SINK = 0.3
WAITING = 0.3
CLIENT_WAITING = 0.5
REFRESHING = 0.3
THROTTLED = 0.1
PRESSED = 0.8


def _is_sink(seen: Evidence) -> bool:
    """Whether the sink may be what the tasks wait for; where their time in `put` is not known, it may."""
    return seen.levels.get("tasks_put_share", 1.0) >= MAY_BE_SINK


def _of_tasks(seen: Evidence, sign: str) -> float | None:
    """A number of waiting backends or clients as a share of the tasks: each task works through one at a time."""
    found = seen.levels.get(sign)
    return None if found is None else min(found / max(seen.around.tasks, 1), 1.0)


def lock_waits(seen: Evidence) -> Finding | None:
    """Backends of 30 % of the tasks, on average, wait for a lock that another transaction holds."""
    share = _of_tasks(seen, "pg_wait_lock")
    if share is None or share < WAITING:
        return None
    return Finding(
        "postgres", "lock waits", f"{percent(share)} of the tasks' time their inserts wait for a lock", share
    )


def wal_waits(seen: Evidence) -> Finding | None:
    """30 % of the tasks' time goes into PostgreSQL's write-ahead log: its locks, its writes and its syncs."""
    share = _of_tasks(seen, "pg_wait_wal")
    if share is None or share < WAITING or not _is_sink(seen):
        return None
    return Finding("postgres", "WAL", f"{percent(share)} of the tasks' time PostgreSQL waits for its WAL", share)


def postgres_waits_for_disk(seen: Evidence) -> Finding | None:
    """30 % of the tasks' time PostgreSQL reads or writes files of tables, or waits for others that do."""
    shares = [_of_tasks(seen, sign) for sign in ("pg_wait_io", "pg_wait_lwlock")]
    if any(share is None for share in shares):
        return None
    disk, latches = (share or 0.0 for share in shares)
    if disk + latches < WAITING or not _is_sink(seen):
        return None
    text = f"{percent(disk)} of the tasks' time PostgreSQL waits for its files, {percent(latches)} for its own latches"
    return Finding("postgres", "PostgreSQL I/O", text, min(disk + latches, 1.0))


def postgres_waits_for_client(seen: Evidence) -> Finding | None:
    """Half of the tasks' time their backends wait in an open transaction for the connector to say more.

    More such backends than there are tasks belong to somebody else, and tell nothing of the connector.
    """
    share = _of_tasks(seen, "pg_wait_client")
    if share is None or share < CLIENT_WAITING or seen.levels["pg_wait_client"] > seen.around.tasks:
        return None
    text = f"{percent(share)} of the tasks' time PostgreSQL waits for the connector within a transaction"
    return Finding("connect", "PostgreSQL waits for Connect", text, share)


def pool_waits(seen: Evidence) -> Finding | None:
    """Clients of 30 % of the tasks, on average, wait for a connection of PgBouncer's pool to be free."""
    share = _of_tasks(seen, "pool_waiting")
    if share is None or share < WAITING:
        return None
    text = f"{seen.levels['pool_waiting']:.1f} clients wait for a connection of the pool"
    if "pool_max_wait_seconds" in seen.levels:
        text += f", the longest {seen.levels['pool_max_wait_seconds']:.2g} s on average"
    return Finding("pgbouncer", "pool waits", text, share)


def write_queue(seen: Evidence) -> Finding | None:
    """Elasticsearch rejects writes, queues more than there are tasks, or holds 80 % of what it may of unfinished ones.

    A rejection alone is enough: the connector must repeat it, or loses the records.
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
    """A tenth of the time Elasticsearch holds indexing back, since merges of its segments do not keep up."""
    share = seen.rises.get("es_indexing_throttled_seconds")
    if share is None or share < THROTTLED:
        return None
    return Finding("elasticsearch", "merges", f"indexing held back for merges {percent(share)} of the time", share)


def refreshes(seen: Evidence) -> Finding | None:
    """30 % of the time and more a shard makes what was written visible: `refresh_interval` is too short."""
    share = seen.rises.get("es_refresh_seconds")
    if share is None or share < REFRESHING or not _is_sink(seen):
        return None
    return Finding("elasticsearch", "refreshes", f"refreshing {percent(share)} of the time", min(share, 1.0))
