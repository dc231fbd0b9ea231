"""Who else is there: what runs on a stack, and what is written there, that is none of a trial's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Others", "met", "risen", "written"]

# Of less than this share of a trial's own records no figure can tell. Fewer records are no load, however short a trial:
# Connect itself writes some fifty of them into its own topics.
MUCH, LEAST = 0.01, 1_000


@dataclass(frozen=True)
class Others:
    """One look at what is none of sinkbench's doing.

    Attributes:
        connectors: tasks that run, or are about to, by connector.
        topics: records that each topic has taken so far, by its name.
        tables: records that each index or table has taken so far, by names such as `orders of postgres`.
        connections: that are open, by sink; absent where that cannot be seen.
    """

    connectors: Mapping[str, int]
    topics: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, int] = field(default_factory=dict)
    connections: Mapping[str, int] = field(default_factory=dict)


def met(before: Others, after: Others, records: int, is_own: Callable[[str], bool] = lambda topic: False) -> list[str]:
    """Who else was there between two looks, a phrase each.

    Args:
        before, after: the two looks.
        records: how many of its own a trial has stored; of others' at least `MUCH` of these, and `LEAST`, are named.
        is_own: whether a topic is the trial's: its connector's dead letter queue, or the one in which Connect keeps
            its connectors' status. A task says there of every record that it uses a topic, until it has read that it
            said so: some thousand times, if it is fast.
    """
    tasks = {name: max(each.connectors.get(name, 0) for each in (before, after)) for name in _names(before, after)}
    found = [
        f"another connector, {name}, ran {count} {'task' if count == 1 else 'tasks'} on these workers"
        for name, count in tasks.items()
    ]
    much = max(MUCH * records, LEAST)
    for where, count in written(before, after).items():
        if count >= much and not (where.topic and is_own(where.name)):
            found.append(f"{count:,} records went into {where}")
    return found


class Place(NamedTuple):
    """Where records go: a topic, or an index or table."""

    name: str
    topic: bool

    def __str__(self) -> str:
        return f"the topic {self.name}" if self.topic else self.name


def written(before: Others, after: Others) -> dict[Place, int]:
    """How many records went into each place between two looks; nothing of a place that got none."""
    topics, tables = risen(before.topics, after.topics), risen(before.tables, after.tables)
    return {Place(name, of is topics): count for of in (topics, tables) for name, count in of.items()}


def risen(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """By how much each count has risen; of what is new, all of it."""
    found = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in found.items() if count > 0}


def _names(before: Others, after: Others) -> list[str]:
    return list(dict.fromkeys(name for each in (before, after) for name in each.connectors))
