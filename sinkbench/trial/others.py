"""Detects clients and writes on a stack that are not a trial's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

# A smaller share of a trial's records changes no figure. Fewer records are no load, however short the trial:
# Connect itself writes about fifty into its own topics.
MUCH, LEAST = 0.01, 1_000


@dataclass(frozen=True)
class Others:
    """Other clients at one moment.

    `topics` and `tables` count records written so far; `connections` lacks sinks where they cannot be seen.
    """

    connectors: Mapping[str, int]
    topics: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, int] = field(default_factory=dict)
    connections: Mapping[str, int] = field(default_factory=dict)


def met(before: Others, after: Others, records: int, is_own: Callable[[str], bool] = lambda topic: False) -> list[str]:
    """Returns the other clients between two readings, a phrase each.

    Args:
        records: how many the trial has stored; others' writes count from `MUCH` of these, and `LEAST`, on.
        is_own: whether a topic is the trial's dead letter queue or Connect's status topic. A fast task writes some
            thousand times to the status topic that it uses a topic, until it has read its own message.
    """
    found = []
    for name in dict.fromkeys([*before.connectors, *after.connectors]):
        count = max(each.connectors.get(name, 0) for each in (before, after))
        found.append(f"another connector, {name}, ran {count} {'task' if count == 1 else 'tasks'} on these workers")
    much = max(MUCH * records, LEAST)
    for where, count in written(before, after).items():
        if count >= much and not (where.topic and is_own(where.name)):
            found.append(f"{count:,} records went into {where}")
    return found


class Place(NamedTuple):
    name: str
    topic: bool

    def __str__(self) -> str:
        return f"the topic {self.name}" if self.topic else self.name


def written(before: Others, after: Others) -> dict[Place, int]:
    """Returns how many records each place received between two readings, without those that received none."""
    topics, tables = risen(before.topics, after.topics), risen(before.tables, after.tables)
    return {Place(name, of is topics): count for of in (topics, tables) for name, count in of.items()}


def risen(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    found = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in found.items() if count > 0}
