"""What limits a trial, and a cell: a rule for each cause outside the sink, from evidence to a finding; None means that
it does not apply, or lacks a figure, which proves nothing."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sinkbench.analysis.samples import by_service
from sinkbench.analysis.words import percent, significant
from sinkbench.bottleneck.evidence import Circumstances, Evidence
from sinkbench.results import Bottleneck
from sinkbench.topology import service_of

NEAR = 0.03
"""So near to its threshold a share decides nothing: readings of the same load differ by as much."""
SATURATED = 0.9
LEAST_OFFERED = 0.995
PUT_BOUND = 0.8
ONE_BY_ONE = 0.5
FEW_RECORDS_PER_WRITE = 1.5
POLLING = 0.5
IDLE = 0.1
STALLED = 0.1
UNEVEN = 1.5
MAY_BE_SINK = 0.3


@dataclass(frozen=True)
class Finding:
    """A cause that the evidence shows; findings are compared by the `share` of time, tasks or cores that they
    explain. `above` is how far that is above its threshold; from -`NEAR` on it may be the cause."""

    component: str
    cause: str
    evidence: str
    share: float
    above: float = math.inf


Rule = Callable[[Evidence], Finding | None]


def may_be_sink(seen: Evidence) -> bool:
    """Whether tasks may be waiting for the sink; if their time in `put` is unknown, they may."""
    return seen.levels.get("tasks_put_share", 1.0) >= MAY_BE_SINK


def share_of_tasks(seen: Evidence, sign: str) -> float | None:
    """The number of waiting backends or clients as a share of the tasks: each task uses one at a time."""
    found = seen.levels.get(sign)
    return None if found is None else min(found / max(seen.around.tasks, 1), 1.0)


def connections_used_up(seen: Evidence) -> Finding | None:
    """Tasks FAILED while all connections of the database were open, except for too few to serve another task."""
    around = seen.around
    if not around.failed_tasks or around.used_connections is None:
        return None
    text = (
        f"{around.used_connections} of {around.connection_limit} connections open,"
        f" {around.failed_tasks} of {around.tasks} tasks FAILED"
    )
    return Finding(around.sink, "connections used up", text, 1.0)


def failed_tasks(seen: Evidence) -> Finding | None:
    """Tasks FAILED, and Kafka gives their partitions to the others. `connections_used_up` is more specific."""
    around = seen.around
    if not around.failed_tasks or connections_used_up(seen) is not None:
        return None
    text = f"{around.failed_tasks} of {around.tasks} tasks FAILED, and left their partitions to the others"
    return Finding("connect", "failed tasks", text, min(around.failed_tasks / around.tasks, 1.0))


def generator(seen: Evidence) -> Finding | None:
    """The generator sent less than 99.5 % of the load, so the pipeline never received it."""
    share = seen.around.offered_share
    if share is None or share >= LEAST_OFFERED:
        return None
    return Finding("generator", "generator too slow", f"{100 * share:.1f} % of the load was sent in time", 1.0)


def request_a_record(seen: Evidence) -> Finding | None:
    """Tasks spend at least half of their time in `put`, with fewer than 1.5 records per write: one round trip per
    record. Half is enough, since rebalances and other tasks wait for such long puts."""
    put, per_write = seen.levels.get("tasks_put_share"), seen.around.records_per_write
    if put is None or put < ONE_BY_ONE - NEAR or per_write is None or per_write > FEW_RECORDS_PER_WRITE:
        return None
    put_ms, size = seen.levels.get("tasks_put_ms"), seen.levels.get("tasks_records_per_put")
    took = f", {significant(put_ms / size, 2)} ms each" if put_ms and size else ""
    text = f"one request a record{took}; {percent(put)} of the tasks' time"
    return Finding("connector", "a request a record", text, put, put - ONE_BY_ONE)


def machine_saturated(seen: Evidence) -> Finding | None:
    """At least 90 % of the machine's cores are in use: every wait is in the end a wait for CPU."""
    busy, cores = seen.machine_busy, seen.around.machine_cores
    if busy is None or busy < SATURATED - NEAR or not cores:
        return None
    text = f"its {cores} cores are {percent(busy)} busy"
    if used := {name: cores or 0.0 for name, cores in by_service(seen.cores.items()).items()}:
        most = max(used, key=lambda name: used[name])
        services = sum(used.values()) - used[most]
        text += f": {most} {used[most]:.1f} cores, other services {services:.1f}"
        text += f", what is no part of the stack {max(busy * cores - services - used[most], 0.0):.1f}"
    return Finding("machine", "machine CPU", text, busy, busy - SATURATED)


def service_saturated(seen: Evidence) -> Finding | None:
    """A service uses at least 90 % of its usable cores: its limit, or a core per working thread (worker: per task)."""
    found = []
    for name, cores in seen.cores.items():
        service = service_of(name)
        for limit, why in _limits(seen, name, service):
            share = cores / limit if limit > 0 else 0.0
            if share >= SATURATED - NEAR:
                of = f"{significant(limit)} {'core' if limit == 1 else 'cores'} {why}"
                text = f"{name} uses {significant(cores, 2)} of the {of}"
                found.append(Finding(service, f"{service} CPU", text, min(share, 1.0), share - SATURATED))
    return max(found, key=lambda finding: finding.share, default=None)


def _limits(seen: Evidence, name: str, service: str) -> list[tuple[float, str]]:
    around, limits = seen.around, []
    if service in around.cpu_limits:
        limits.append((around.cpu_limits[service], "that it is allowed"))
    if service in around.usable_cores:
        limits.append(around.usable_cores[service])
    if service == "connect":
        tasks = around.placement.get(name, 0) if name != service else around.tasks
        limits.append((float(tasks), "that its tasks can use, a thread each"))
    return limits


def idle_tasks(seen: Evidence) -> Finding | None:
    """At least a tenth of the tasks have no partition, or none with records: too few partitions, or keys."""
    around = seen.around
    if around.failed_tasks:
        # They had some before they failed.
        return None
    unassigned = seen.levels.get("tasks_without_partitions", 0.0)
    idle = seen.levels.get("tasks_without_records")
    if idle is not None and _enough_partitions(around):
        # The topic has a partition for these: they never asked for it.
        idle, unassigned = idle - unassigned, 0.0
    if idle is None and around.partitions_with_records is not None:
        # Without metrics of the tasks: at least this many.
        unassigned = float(max(around.tasks - (around.partitions or around.tasks), 0))
        idle = float(max(around.tasks - around.partitions_with_records, 0))
    if idle is None or idle < 1 or idle / around.tasks < IDLE:
        return None
    want = "a partition" if unassigned >= idle else "records"
    text = f"{idle:.0f} of {around.tasks} tasks never had {want}"
    if around.partitions_with_records is not None:
        text += f"; {around.partitions_with_records} of {around.partitions} partitions hold records"
    return Finding("topic", "idle tasks", text, min(idle / around.tasks, 1.0))


def absent_tasks(seen: Evidence) -> Finding | None:
    """At least a tenth of the tasks have no partition, though there is one for each. Such a task waits in its start,
    for instance for a connection, and Connect reports it as RUNNING."""
    around = seen.around
    absent = seen.levels.get("tasks_without_partitions", 0.0)
    if around.failed_tasks or not _enough_partitions(around) or absent < 1 or absent / around.tasks < IDLE:
        return None
    text = f"{absent:.0f} of {around.tasks} tasks never asked for one of the {around.partitions} partitions"
    return Finding("connect", "absent tasks", text, min(absent / around.tasks, 1.0))


def _enough_partitions(around: Circumstances) -> bool:
    return around.partitions is not None and around.partitions >= around.tasks


def uneven_records(seen: Evidence) -> Finding | None:
    """One task has at least 1.5 times an even share of the records: too few keys or partitions."""
    share, tasks = seen.levels.get("tasks_busiest_share"), seen.around.tasks
    if seen.around.failed_tasks or share is None or tasks < 2 or share * tasks < UNEVEN:
        return None
    if idle_tasks(seen) is not None or absent_tasks(seen) is not None:
        return None
    text = f"one task has {percent(share)} of the records, {percent(1 / tasks)} would be even"
    return Finding("topic", "uneven records", text, share - 1 / tasks)


def uneven_placement(seen: Evidence) -> Finding | None:
    """A worker has at least two tasks more than another: the workers with the most tasks finish last."""
    placed = seen.around.placement
    if len(placed) < 2 or max(placed.values()) - min(placed.values()) < 2:
        return None
    text = "tasks " + ", ".join(f"{name}: {count}" for name, count in placed.items())
    most = max(placed.values())
    return Finding("connect", "uneven placement", text, 1 - sum(placed.values()) / len(placed) / most)


def stalled(seen: Evidence) -> Finding | None:
    """For at least 10 % of the time no new record was seen in the sink, in gaps of at least 3 s. The cause is the
    service that answered no probe meanwhile, else the sink."""
    share = min(sum(each.seconds for each in seen.stalls) / seen.seconds, 1.0) if seen.seconds else 0.0
    if share < STALLED:
        return None
    stall = max(seen.stalls, key=lambda each: each.seconds)
    return Finding(stall.silent or "sink", "a stall", f"{stall.in_words}; {percent(share)} of the time in all", share)


def waits_for_sink(seen: Evidence) -> Finding | None:
    """Tasks spend at least 80 % of their time in `put`, whatever the reason."""
    put = seen.levels.get("tasks_put_share")
    if put is None or put < PUT_BOUND - NEAR:
        return None
    size = seen.levels.get("tasks_records_per_put")
    text = f"tasks wait for the sink {percent(put)} of their time"
    if size is not None and "tasks_put_ms" in seen.levels:
        text += f": {significant(seen.levels['tasks_put_ms'])} ms for {size:,.0f} records"
    return Finding("sink", "waits for the sink", text, put, put - PUT_BOUND)


def waits_for_records(seen: Evidence) -> Finding | None:
    """In a drain, tasks wait at least half of their time for records, though all are available. The share is a mean
    over polls, and the first one waits for partitions: if `put` takes half of the time, this is at most the rest."""
    poll = seen.levels.get("tasks_poll_share")
    if poll is None or poll < POLLING - NEAR or seen.around.mode != "drain":
        return None
    if seen.levels.get("tasks_put_share", 0.0) >= POLLING:
        return None
    text = f"tasks wait for records {percent(poll)} of their time"
    return Finding("kafka", "waits for records", text, poll, poll - POLLING)


NOT_IDENTIFIED = "not identified"


def ranks(of_sink: Sequence[Rule] = ()) -> tuple[tuple[Rule, ...], ...]:
    """All rules, with those of the sink, by descending rank; in a rank the largest share counts."""
    return (
        # None of them is fixed by what the others name.
        (connections_used_up, failed_tasks, generator),
        # What the CPU is used for explains more than that it is used up.
        (request_a_record,),
        # Without free CPU everything else waits for that reason.
        (machine_saturated,),
        (service_saturated, *of_sink, idle_tasks, absent_tasks, uneven_records, uneven_placement),
        # These are true of most of the above, and count only if nothing explains them.
        (stalled,),
        (waits_for_sink, waits_for_records),
    )


def cause_of(seen: Evidence | None, of_sink: Sequence[Rule] = ()) -> Bottleneck | None:
    """The largest finding of the first rank that has one, with its evidence and the other findings; "not identified"
    if no rule applies, None without evidence. Near its threshold it and the next cause are both named."""
    if seen is None:
        return None
    found: list[Finding] = []
    for rank in ranks(of_sink):
        in_rank = [finding for rule in rank if (finding := rule(seen)) is not None]
        # The sort is stable: equal shares keep the order of the rules.
        found += sorted(in_rank, key=lambda finding: -finding.share)
    none = Finding(NOT_IDENTIFIED, NOT_IDENTIFIED, _figures(seen), 0.0)
    if all(finding.above < 0 for finding in found):
        found.append(none)
    first, *others = found
    undecided = first.above < NEAR and bool(others)
    # What the threshold of another rule does not reach decides nothing.
    also = [
        each for place, each in enumerate(others) if each is not none and (each.above >= 0 or (undecided and not place))
    ]
    return Bottleneck(
        component=first.component,
        cause=first.cause,
        or_component=others[0].component if undecided else "",
        or_cause=others[0].cause if undecided else "",
        evidence=first.evidence,
        also=[f"{other.cause}: {other.evidence}" for other in also],
    )


def shared_cause(trials: Iterable[Bottleneck | None]) -> Bottleneck | None:
    """The most frequent cause of a cell's trials (the earliest of equals), with its first evidence, and the second one
    if as many trials name it; None without any."""
    if not (known := [each for each in trials if each is not None]):
        return None
    (cause, count), *rest = Counter(cause for each in known for cause in causes_of(each)).most_common(2)
    first = next((each for each in known if causes_of(each)[0] == cause), known[0])
    other = next((each for each, trials in rest if trials == count), ("", ""))
    text = first.evidence if count == len(known) else f"{first.evidence} (so in {count} of {len(known)} trials)"
    found = dict(zip(("component", "cause", "or_component", "or_cause"), (*cause, *other), strict=True))
    return first.model_copy(update={**found, "evidence": text})


def causes_of(found: Bottleneck) -> list[tuple[str, str]]:
    """Component and cause, and the other ones where the figures do not decide."""
    causes = [(found.component, found.cause), (found.or_component, found.or_cause)]
    return causes if found.or_cause else causes[:1]


def _figures(seen: Evidence) -> str:
    shares = {
        "machine CPU": seen.machine_busy,
        "put": seen.levels.get("tasks_put_share"),
        "poll": seen.levels.get("tasks_poll_share"),
    }
    known = [f"{name} {percent(share)}" for name, share in shares.items() if share is not None]
    return ", ".join(known) or "the services show too little"
