"""Rules for bottlenecks within PostgreSQL and PgBouncer, as in `bottleneck.rules`."""

from __future__ import annotations

from sinkbench.analysis.words import percent
from sinkbench.bottleneck.evidence import Evidence
from sinkbench.bottleneck.rules import Finding, Rule, may_be_sink, share_of_tasks

WAITING = 0.3
CLIENT_WAITING = 0.5


def lock_waits(seen: Evidence) -> Finding | None:
    """Backends of 30 % of the tasks, on average, wait for another transaction's lock."""
    share = share_of_tasks(seen, "pg_wait_lock")
    if share is None or share < WAITING:
        return None
    text = f"{percent(share)} of the tasks' time their inserts wait for a lock"
    return Finding("postgres", "lock waits", text, share)


def wal_waits(seen: Evidence) -> Finding | None:
    """30 % of the tasks' time is spent in PostgreSQL's write-ahead log: its locks, writes and syncs."""
    share = share_of_tasks(seen, "pg_wait_wal")
    if share is None or share < WAITING or not may_be_sink(seen):
        return None
    return Finding("postgres", "WAL", f"{percent(share)} of the tasks' time PostgreSQL waits for its WAL", share)


def waits_for_disk(seen: Evidence) -> Finding | None:
    """30 % of the tasks' time PostgreSQL reads or writes files of tables, or waits for processes that do."""
    shares = [share_of_tasks(seen, sign) for sign in ("pg_wait_io", "pg_wait_lwlock")]
    if any(share is None for share in shares):
        return None
    disk, latches = (share or 0.0 for share in shares)
    if disk + latches < WAITING or not may_be_sink(seen):
        return None
    text = f"{percent(disk)} of the tasks' time PostgreSQL waits for its files, {percent(latches)} for its own latches"
    return Finding("postgres", "PostgreSQL I/O", text, min(disk + latches, 1.0))


def waits_for_client(seen: Evidence) -> Finding | None:
    """Half of the tasks' time their backends wait in an open transaction for the connector. More such backends than
    tasks belong to other clients, and say nothing about the connector.
    """
    share = share_of_tasks(seen, "pg_wait_client")
    if share is None or share < CLIENT_WAITING or seen.levels["pg_wait_client"] > seen.around.tasks:
        return None
    text = f"{percent(share)} of the tasks' time PostgreSQL waits for the connector within a transaction"
    return Finding("connect", "PostgreSQL waits for Connect", text, share)


def pool_waits(seen: Evidence) -> Finding | None:
    """Clients of 30 % of the tasks, on average, wait for a free connection of PgBouncer's pool."""
    share = share_of_tasks(seen, "pool_waiting")
    if share is None or share < WAITING:
        return None
    text = f"{seen.levels['pool_waiting']:.1f} clients wait for a connection of the pool"
    if "pool_max_wait_seconds" in seen.levels:
        text += f", the longest {seen.levels['pool_max_wait_seconds']:.2g} s on average"
    return Finding("pgbouncer", "pool waits", text, share)


RULES: tuple[Rule, ...] = (lock_waits, pool_waits, wal_waits, waits_for_disk, waits_for_client)
