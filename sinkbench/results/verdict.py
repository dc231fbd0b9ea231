"""What is said of figures: why they must not be used, what limits them, and how durable a stored record is."""

from __future__ import annotations

from sinkbench.errors import ReasonCode
from sinkbench.results.base import Record, Whole

__all__ = ["Bottleneck", "Durability", "Reason"]


class Reason(Record):
    """Why figures must not be used, or what is wrong with a cell: a code for programs, a text for people."""

    code: ReasonCode
    text: str
    figures: dict[str, float] = {}
    """The numbers in the text, by name."""


class Bottleneck(Record):
    """The component that limits a cell, and what shows it."""

    component: str
    """A service, or machine, connector, topic, generator, sink; "not identified" if nothing shows what it is."""
    evidence: str
    cause: str = ""
    """What about the component, in two to four words that are the same for the same cause."""
    or_component: str = ""
    or_cause: str = ""
    """The other cause, where a figure is too near to its threshold to decide between the two; else empty."""
    also: list[str] = []
    """What else was found, but follows from it or accounts for less."""


class Durability(Record):
    """What is on how many nodes when a record counts as stored: by the settings that were found, and what was seen of
    nodes. What a connector loses before it writes is not in it."""

    text: str = ""
    """Of the sink, as `2 nodes, disk` or `1 node, memory (5 s)`; empty if it is not known."""
    nodes: Whole | None = None
    """That have it; None if that is not known."""
    on_disk: Whole | None = None
    """Of these, those that have it on their disk, by an fsync; 0 also where nothing is sure after a crash."""
    kafka: str = ""
    """What Kafka has when it acknowledges a record of the load, as `acks all, 3 of 3 in sync`."""
    kafka_nodes: Whole | None = None
    """Brokers that have it by then, in memory at least; None if that is not known."""
    settings: dict[str, str] = {}
    """Of the sink, by its own names, as they were in the trial."""
