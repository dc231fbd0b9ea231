"""Rules about connectors: their tasks, the records that these get, and how they deliver them. Pure."""

import math
from collections.abc import Iterator

from sinkbench.analysis.deadletters import QUEUE
from sinkbench.analysis.words import counted, few_of, in_time
from sinkbench.doctor.configs import batch_of, one_by_one, poll_of, request_bytes
from sinkbench.doctor.diagnosis import Area, Connector, Facts, Found, NotSeen

# With fewer records per partition, chance alone leaves some empty.
LEAST_PER_PARTITION = 20
# Rates that differ by less are equal.
EQUAL = 0.1
# Half of this stored 68 % of the records/s (docs/studies/one-connector-two-sinks.md).
LEAST_REQUEST_BYTES = 500_000
TOLERANCE = "errors.tolerance"


def race_refused(facts: Facts) -> Iterator[Found | NotSeen]:
    if facts.plan is not None and Area.CONNECT in facts.unseen:
        yield NotSeen(facts.unseen[Area.CONNECT])
    for line in facts.refusals:
        yield Found(f"plan {facts.plan}", line)


def failed_tasks(facts: Facts) -> Iterator[Found]:
    for each in facts.connectors:
        if each.planned or not (each.failed or each.state == "FAILED"):
            continue
        what = f"{each.failed} of {each.tasks} tasks FAILED" if each.failed else "the connector FAILED"
        yield Found(each.name, what + (f": {each.cause}" if each.cause else ""))


def uneven_tasks(facts: Facts) -> Iterator[Found]:
    for each in facts.running:
        if not facts.workers or not each.placement or each.failed:
            continue
        # Where the workers' names are unknown, the placement lacks workers without a task.
        counts = [*each.placement.values(), *([0] * (facts.workers - len(each.placement)))]
        if max(counts) - min(counts) < 2 and (min(counts) or each.tasks < facts.workers):
            continue
        spread = ", ".join(f"{worker} {number}" for worker, number in sorted(each.placement.items()))
        text = f"its {each.tasks} tasks are spread unevenly over {facts.workers} workers ({spread})"
        yield Found(each.name, text, values={"tasks": max(1, round(each.tasks / facts.workers))})


def other_connectors(facts: Facts) -> Iterator[Found]:
    others = [each for each in facts.running if not each.trials]
    if facts.plan is None and len(others) == len(facts.running):
        return
    alone = "a race on your own stack is refused while another connector runs"
    why = "a trial with interference is in no rate" if facts.shared else alone
    for each in others:
        yield Found(each.name, f"it runs {counted(each.tasks, 'task')} on the same workers", why)


def more_tasks_than_partitions(facts: Facts) -> Iterator[Found | NotSeen]:
    yield from _topics_not_seen(facts)
    for each in facts.running:
        partitions = sum(len(facts.topics[name]) for name in each.topics if name in facts.topics)
        if not 0 < partitions < each.tasks:
            continue
        fewer = partitions // facts.workers if facts.workers else 0
        scale = f"sinkbench scale {each.name} {fewer}, or " if fewer else ""
        yield Found(
            each.name,
            f"{each.tasks} tasks read {partitions} partitions, so that {each.tasks - partitions} of them have nothing"
            " to do",
            values={"scale": scale, "tasks": each.tasks},
        )


def few_keys(facts: Facts) -> Iterator[Found | NotSeen]:
    if facts.plan is None or facts.partitions is None or not facts.planned:
        return
    if facts.keys is None:
        yield NotSeen("the keys of your own records are known once they are in a topic")
        return
    keys, partitions = facts.keys, facts.partitions
    # Each key falls into any partition with equal probability.
    filled = partitions * (1 - (1 - 1 / partitions) ** keys)
    most = max(each.tasks for each in facts.planned)
    if filled + 0.5 < most:
        yield Found(
            f"plan {facts.plan}",
            f"{counted(keys, 'key')}: about {filled:.0f} of {partitions} partitions get records, for up to"
            f" {counted(most, 'task')}",
            values={"keys": math.ceil(8 * partitions * math.log(max(partitions, 2)))},
        )


def empty_partitions(facts: Facts) -> Iterator[Found | NotSeen]:
    yield from _topics_not_seen(facts)
    for each in facts.running:
        counts = [count for name in each.topics for count in facts.topics.get(name, ())]
        filled = sum(count > 0 for count in counts)
        if sum(counts) < LEAST_PER_PARTITION * len(counts) or filled == len(counts):
            continue
        text = f"{filled} of the {len(counts)} partitions that it reads have records, for {counted(each.tasks, 'task')}"
        keys = LEAST_PER_PARTITION * len(counts)
        yield Found(each.name, text, invalidates=filled < each.tasks, values={"keys": keys})


def _topics_not_seen(facts: Facts) -> Iterator[NotSeen]:
    for each in facts.running:
        if "topics.regex" in each.config:
            yield NotSeen(f"{each.name} names its topics by a pattern")


def request_a_record(facts: Facts) -> Iterator[Found]:
    for each in facts.in_question:
        if (setting := one_by_one(each.config)) is not None:
            what, _, fix = setting.partition("; ")
            yield Found(each.label, f"it sends a request for each record: {what}", fix=fix)


def batch_beyond_poll(facts: Facts) -> Iterator[Found]:
    for each in facts.in_question:
        if (batch := batch_of(each.config)) is None:
            continue
        partitions, size = _read(facts, each)
        (key, records), (limit, most) = batch, poll_of(each.config, partitions, size)
        if records > most:
            of_bytes = f" of {size:,.0f} bytes" if size and limit.endswith("bytes") else ""
            text = f"{key} is {records:,}, and a poll brings at most {most:,} records{of_bytes} ({limit})"
            yield Found(each.label, text, values={"limit": limit, "key": key, "most": most})


def small_requests(facts: Facts) -> Iterator[Found]:
    for each in facts.in_question:
        found = request_bytes(each.config, *_read(facts, each))
        if found is not None and found[1] < LEAST_REQUEST_BYTES:
            text = f"its bulk requests have at most {found[1]:,} bytes ({found[0]})"
            yield Found(each.label, text, values={"limit": found[0], "least": LEAST_REQUEST_BYTES})


def _read(facts: Facts, each: Connector) -> tuple[float, float | None]:
    """The partitions of a task, and the records' mean size in bytes."""
    there = sum(len(facts.topics.get(name, ())) for name in each.topics) or facts.partitions or each.tasks
    return max(there / each.tasks, 1), facts.record_bytes if each.progress is None else each.progress.record_bytes


def standing_still(facts: Facts) -> Iterator[Found]:
    for each in facts.running:
        if (seen := each.progress) is None or not seen.stands_still or each.failed:
            continue
        still, all_of = few_of([f"{name}-{number}" for name, number in seen.still], 4), len(seen.readings[-1][1])
        waits = "" if seen.waited is None else f", and the next record has waited for {in_time(seen.waited)}"
        yield Found(
            each.name,
            f"its tasks are RUNNING, and in {len(seen.still)} of {counted(all_of, 'partition')} ({still}) nothing was"
            f" committed for {in_time(seen.readings[-1][0])}{waits}{each.said and f'; a log says: {each.said}'}",
        )


def lag_grows(facts: Facts) -> Iterator[Found]:
    for each in facts.running:
        if (seen := each.progress) is None or seen.rates is None or not seen.unread or seen.stands_still:
            continue
        read, came = seen.rates
        if read < (1 - EQUAL) * came:
            eaten = "" if seen.eaten_in is None else f"; in {in_time(seen.eaten_in)} Kafka deletes unread ones"
            unread = f"{sum(seen.unread.values()):,} are unread{eaten}"
            yield Found(each.name, f"{came:,.0f} records/s arrive, {read:,.0f} are read, {unread}")


def no_dead_letter_queue(facts: Facts) -> Iterator[Found]:
    for each in facts.in_question:
        if each.config.get(TOLERANCE, "none").lower() == "all" and not each.config.get(QUEUE):
            name = each.label.rpartition("/")[2]
            yield Found(each.label, f"{TOLERANCE} is all, and there is no {QUEUE}", values={"name": name})


def durability_differs(facts: Facts) -> Iterator[Found]:
    found: dict[str, tuple[str, ...]] = {}
    names = dict.fromkeys(each.sink for each in facts.in_question if each.sink in facts.sinks)
    for name in names or facts.sinks:
        if name is not None:
            state, those = facts.sinks[name], [each.unsafe for each in facts.in_question if each.sink == name]
            found[name] = (*state.unsafe, *dict.fromkeys(line for lines in those or [state.target] for line in lines))
    safe = [name for name, lines in found.items() if not lines]
    for name, lines in found.items():
        if lines and safe:
            yield Found(name, f"{', '.join(lines)}; {' and '.join(safe)} has what it acknowledges on its disk")
