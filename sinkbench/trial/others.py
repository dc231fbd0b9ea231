"""Who else is there: what runs on a stack, and what is written there, that is none of a trial's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Others", "met", "risen"]

# Of less than this share of a trial's own records no figure can tell. Fewer records are no load, however short a trial:
# Connect itself writes some fifty of them into its own topics.
MUCH, LEAST = 0.01, 1_000


@dataclass(frozen=True)
class Others:
    """One look at what is none of sinkbench's doing.

    Attributes:
        connectors: tasks that run, or are about to, by connector.
        topics: records that each topic has taken so far, by names such as `the topic orders`.
        tables: records that each index or table has taken so far, by names such as `orders of postgres`.
        connections: that are open, by sink; absent where that cannot be seen.
    """

    connectors: Mapping[str, int]
    topics: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, int] = field(default_factory=dict)
    connections: Mapping[str, int] = field(default_factory=dict)


def met(before: Others, after: Others, records: int) -> list[str]:
    """Who else was there between two looks, a phrase each.

    Args:
        before, after: the two looks.
        records: how many of its own a trial has stored; of others' at least `MUCH` of these, and `LEAST`, are named.
    """
    tasks = {name: max(each.connectors.get(name, 0) for each in (before, after)) for name in _names(before, after)}
    found = [
        f"another connector, {name}, ran {count} {'task' if count == 1 else 'tasks'} on these workers"
        for name, count in tasks.items()
    ]
    written = {**risen(before.topics, after.topics), **risen(before.tables, after.tables)}
    much = max(MUCH * records, LEAST)
    return [*found, *(f"{count:,} records went into {where}" for where, count in written.items() if count >= much)]


def risen(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """By how much each count has risen; of what is new, all of it."""
    found = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in found.items() if count > 0}


def _names(before: Others, after: Others) -> list[str]:
    return list(dict.fromkeys(name for each in (before, after) for name in each.connectors))
