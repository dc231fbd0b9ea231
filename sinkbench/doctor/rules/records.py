"""Rules about keys: whether every partition, and so every task, gets its share of the records. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sinkbench.analysis.words import counted
from sinkbench.doctor.diagnosis import Found, NotSeen, Rule, topics_not_seen
from sinkbench.doctor.facts import Area, Facts

# Ratio of the fullest partition to the mean, from which on that partition determines the time of a drain.
SKEWED, EXPECTED_SKEW = 2.0, 1.5
# With fewer records per partition, chance alone makes them uneven.
LEAST_PER_PARTITION = 20


def expected_partitions(keys: int, partitions: int) -> float:
    """Expected number of partitions with a record, if each key falls into any partition with equal probability."""
    return partitions * (1 - (1 - 1 / partitions) ** keys)


def expected_fullest(keys: int, partitions: int) -> float:
    """Expected ratio of the fullest partition to the mean, for evenly used keys that fall into partitions at random.
    The largest of P Poisson numbers with mean m is about m + sqrt(2 m ln P).
    """
    mean = keys / partitions
    return 1 + math.sqrt(2 * math.log(partitions) / mean) if partitions > 1 else 1.0


def few_keys(facts: Facts) -> Iterator[Found | NotSeen]:
    if facts.plan is None or facts.partitions is None or not facts.planned:
        return
    if facts.keys is None:
        yield NotSeen("the keys of your own records are known once they are in a topic")
        return
    keys, partitions = facts.keys, facts.partitions
    filled, fullest = expected_partitions(keys, partitions), expected_fullest(keys, partitions)
    most = max(each.tasks for each in facts.planned)
    fix = f"raise load.keys to {math.ceil(8 * partitions * math.log(max(partitions, 2))):,} or more"
    if filled + 0.5 < most:
        idle = f"about {filled:.0f} of {partitions} partitions get records, for up to {counted(most, 'task')}"
        yield Found(
            f"plan {facts.plan}",
            f"{counted(keys, 'key')}: {idle}",
            "all records of a key are in one partition, and a task without records has nothing to do",
            fix,
            invalidates=True,
        )
    elif fullest > EXPECTED_SKEW:
        yield Found(
            f"plan {facts.plan}",
            f"{keys:,} keys for {partitions} partitions: the fullest gets about {fullest:.1f} times the mean",
            "a drain ends when its fullest partition is empty, while the tasks of the others wait",
            fix,
        )


def empty_partitions(facts: Facts) -> Iterator[Found | NotSeen]:
    yield from topics_not_seen(facts)
    for each in facts.running:
        counts = [count for name in each.topics if name in facts.topics for count in facts.topics[name].records]
        filled = sum(count > 0 for count in counts)
        if sum(counts) < LEAST_PER_PARTITION * len(counts) or filled == len(counts):
            continue
        yield Found(
            each.name,
            f"{filled} of the {len(counts)} partitions that it reads have records, for {counted(each.tasks, 'task')}",
            "all records of a key are in one partition, and a task without records has nothing to do",
            f"use at least {LEAST_PER_PARTITION * len(counts)} different keys, or none, in what fills the topic",
            invalidates=filled < each.tasks,
        )


def skewed_keys(facts: Facts) -> Iterator[Found | NotSeen]:
    yield from topics_not_seen(facts)
    names = dict.fromkeys(name for each in facts.running for name in each.topics)
    for topic in (facts.topics[name] for name in names if name in facts.topics):
        counts = topic.records
        if len(counts) < 2 or sum(counts) < LEAST_PER_PARTITION * len(counts):
            continue
        times = max(counts) * len(counts) / sum(counts)
        if times < SKEWED:
            continue
        yield Found(
            f"topic {topic.name}",
            f"the fullest of {len(counts)} partitions has {times:.1f} times the mean of {sum(counts) // len(counts):,}"
            f" records",
            "one task has most of the work, whatever the number of tasks",
            "choose a key that more records differ in, or send without a key",
        )


RULES = (
    Rule("few-keys", (), few_keys),
    Rule("empty-partitions", (Area.CONNECT, Area.KAFKA), empty_partitions),
    Rule("skewed-keys", (Area.CONNECT, Area.KAFKA), skewed_keys),
)
