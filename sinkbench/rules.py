"""The causes that can limit a trial: one function each, with its threshold and the reason for it.

Each takes the evidence of a trial and returns a finding, or None: it is not this, or a figure that it needs was not
measured, which proves nothing. In which order they count is up to `causes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sinkbench.evidence import Evidence

__all__ = [
    "Finding",
    "connections_used_up",
    "generator",
    "idle_tasks",
    "lock_waits",
    "machine_saturated",
    "merges_throttle",
    "pool_waits",
    "postgres_waits_for_client",
    "postgres_waits_for_disk",
    "refreshes",
    "request_a_record",
    "service_saturated",
    "uneven_placement",
    "uneven_records",
    "waits_for_records",
    "waits_for_sink",
    "wal_waits",
    "write_queue",
]

SATURATED = 0.9
LEAST_OFFERED = 0.995
PUT_BOUND = 0.8
MAY_BE_SINK = 0.3
FEW_RECORDS_PER_WRITE = 1.5
WAITING = 0.3
CLIENT_WAITING = 0.5
POLLING = 0.5
IDLE = 0.1
UNEVEN = 1.5
REFRESHING = 0.3
THROTTLED = 0.1
PRESSED = 0.8
# PgBouncer does all its work in one thread, whatever cores there are.
ONE_THREAD = {"pgbouncer": 1.0}


@dataclass(frozen=True)
class Finding:
    """A cause that the evidence shows.

    Attributes:
        component: what limits: a service, or machine, connector, topic, generator.
        cause: the same in two to four words, always the same ones.
        evidence: the figures that show it, for a person.
        share: of the time, or of the tasks or cores, that it accounts for: 0 to 1, by which findings are compared.
    """

    component: str
    cause: str
    evidence: str
    share: float


def percent(share: float) -> str:
    """A share as a person reads it: 0.973 is 97 %."""
    return f"{100 * share:.0f} %"


def _is_sink(seen: Evidence) -> bool:
    """Whether the sink may be what the tasks wait for; where their time in `put` is not known, it may."""
    return seen.levels.get("tasks_put_share", 1.0) >= MAY_BE_SINK


def _of_tasks(seen: Evidence, sign: str) -> float | None:
    """A number of waiting backends or clients as a share of the tasks: each task works through one at a time."""
    found = seen.levels.get(sign)
    return None if found is None else min(found / max(seen.around.tasks, 1), 1.0)


def connections_used_up(seen: Evidence) -> Finding | None:
    """Tasks FAILED while all connections of the database were open, but for those too few to serve another task."""
    around = seen.around
    if not around.failed_tasks or around.used_connections is None:
        return None
    text = (
        f"{around.used_connections} of {around.connection_limit} connections open,"
        f" {around.failed_tasks} of {around.tasks} tasks FAILED"
    )
    return Finding("postgres", "connections used up", text, 1.0)


def generator(seen: Evidence) -> Finding | None:
    """The generator sent less than 99.5 % of what it was asked for: the pipeline was never given the load."""
    share = seen.around.offered_share
    if share is None or share >= LEAST_OFFERED:
        return None
    return Finding("generator", "generator too slow", f"{100 * share:.1f} % of the load was sent in time", 1.0)


def request_a_record(seen: Evidence) -> Finding | None:
    """Tasks spend 80 % of their time and more in `put`, and the sink counted fewer than 1.5 records a write.

    Then a round trip is paid for each record, one after the other; neither a faster sink nor more CPU saves that.
    """
    put, per_write = seen.levels.get("tasks_put_share"), seen.around.records_per_write
    if put is None or put < PUT_BOUND or per_write is None or per_write > FEW_RECORDS_PER_WRITE:
        return None
    each = _ms_a_record(seen)
    text = f"one request a record{'' if each is None else f', {each:.2g} ms each'}; {percent(put)} of the tasks' time"
    return Finding("connector", "a request a record", text, put)


def _ms_a_record(seen: Evidence) -> float | None:
    put, size = seen.levels.get("tasks_put_ms"), seen.levels.get("tasks_records_per_put")
    return put / size if put and size else None


def machine_saturated(seen: Evidence) -> Finding | None:
    """90 % and more of the machine's cores are in use: whoever waits, waits for CPU in the end."""
    busy, cores = seen.machine_busy, seen.around.machine_cores
    if busy is None or busy < SATURATED or not cores:
        return None
    text = f"its {cores} cores are {percent(busy)} busy"
    used = seen.cores_by_service()
    if used:
        used["processes outside the stack"] = busy * cores - sum(used.values())
        most = max(used, key=lambda name: used[name])
        text += f", the largest part {most} ({used[most]:.1f} cores)"
    return Finding("machine", "machine CPU", text, busy)


def service_saturated(seen: Evidence) -> Finding | None:
    """A service uses 90 % and more of the CPU that it can: its limit, or one core for each thread that works.

    PgBouncer has one thread. In a worker each task is one thread, and in PostgreSQL a process serves each task.
    """
    found = []
    for name, cores in seen.cores.items():
        service = name.rpartition("-")[0] or name
        for limit, why in _limits(seen, name, service):
            share = cores / limit if limit > 0 else 0.0
            if share >= SATURATED:
                text = f"{name} uses {cores:.2g} of the {limit:g} {'core' if limit == 1 else 'cores'} {why}"
                found.append(Finding(service, f"{service} CPU", text, min(share, 1.0)))
    return max(found, key=lambda finding: finding.share, default=None)


def _limits(seen: Evidence, name: str, service: str) -> list[tuple[float, str]]:
    around, limits = seen.around, []
    if service in around.cpu_limits:
        limits.append((around.cpu_limits[service], "that it is allowed"))
    if service in ONE_THREAD:
        limits.append((ONE_THREAD[service], "that its only thread can use"))
    if service == "connect":
        tasks = around.placement.get(name, 0) if name != service else around.tasks
        limits.append((float(tasks), "that its tasks can use, a thread each"))
    if service == "postgres":
        limits.append((float(around.tasks), "that a process for each task can use"))
    return limits


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
    """Half of the tasks' time their backends wait in an open transaction for the connector to say more."""
    share = _of_tasks(seen, "pg_wait_client")
    if share is None or share < CLIENT_WAITING:
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


def idle_tasks(seen: Evidence) -> Finding | None:
    """A tenth of the tasks and more have no partition, or none with records in it: too few partitions, or keys."""
    around = seen.around
    unassigned = seen.levels.get("tasks_without_partitions", 0.0)
    idle = seen.levels.get("tasks_without_records")
    if idle is None and around.partitions_with_records is not None:
        # Without metrics of the tasks: so many at least.
        unassigned = float(max(around.tasks - (around.partitions or around.tasks), 0))
        idle = float(max(around.tasks - around.partitions_with_records, 0))
    if idle is None or idle < 1 or idle / around.tasks < IDLE:
        return None
    want = "a partition" if unassigned >= idle else "records"
    text = f"{idle:.0f} of {around.tasks} tasks never had {want}"
    if around.partitions_with_records is not None:
        text += f"; {around.partitions_with_records} of {around.partitions} partitions hold records"
    return Finding("topic", "idle tasks", text, min(idle / around.tasks, 1.0))


def uneven_records(seen: Evidence) -> Finding | None:
    """One task has half as many records again as an even share would be: too few keys, or partitions, to divide."""
    share, tasks = seen.levels.get("tasks_busiest_share"), seen.around.tasks
    if share is None or tasks < 2 or share * tasks < UNEVEN:
        return None
    text = f"one task has {percent(share)} of the records, {percent(1 / tasks)} would be even"
    return Finding("topic", "uneven records", text, share - 1 / tasks)


def uneven_placement(seen: Evidence) -> Finding | None:
    """A worker has two tasks more than another: the workers with most of them end last."""
    placed = seen.around.placement
    if len(placed) < 2 or max(placed.values()) - min(placed.values()) < 2:
        return None
    text = "tasks " + ", ".join(f"{name}: {count}" for name, count in placed.items())
    most = max(placed.values())
    return Finding("connect", "uneven placement", text, 1 - sum(placed.values()) / len(placed) / most)


def waits_for_sink(seen: Evidence) -> Finding | None:
    """Tasks spend 80 % of their time and more in `put`, whatever holds it up there."""
    put = seen.levels.get("tasks_put_share")
    if put is None or put < PUT_BOUND:
        return None
    size = seen.levels.get("tasks_records_per_put")
    text = f"tasks wait for the sink {percent(put)} of their time"
    if size is not None and "tasks_put_ms" in seen.levels:
        text += f": {seen.levels['tasks_put_ms']:.3g} ms for {size:,.0f} records"
    return Finding("sink", "waits for the sink", text, put)


def waits_for_records(seen: Evidence) -> Finding | None:
    """In a drain, with all records there from the start, tasks wait half of their time and more for some to arrive."""
    poll = seen.levels.get("tasks_poll_share")
    if poll is None or poll < POLLING or seen.around.mode != "drain":
        return None
    return Finding("kafka", "waits for records", f"tasks wait for records {percent(poll)} of their time", poll)
