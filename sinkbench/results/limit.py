"""What a stage of the path can do alone."""

from __future__ import annotations

from sinkbench.results.base import Amount, Record, Whole
from sinkbench.results.spread import Spread

__all__ = ["Limit", "LimitInBlock", "LimitStep"]


class LimitStep(Record):
    """One measurement of the search for a limit; the last that `confirms` is longer, and gives the limit."""

    batch: Whole | None = None
    connections: Whole
    records_per_second: Amount | None = None
    problem: str | None = None
    """Why there is no rate."""
    confirms: bool = False


class LimitInBlock(Record):
    """One measurement of a limit, next to the trials of a block."""

    block: Whole
    records_per_second: Amount | None = None
    problem: str | None = None
    """Why there is no rate."""
    cpu_seconds_per_million: dict[str, Amount | None] = {}
    """While it was written: of each service, and of the plain clients as "client"; empty if that is not known."""


class Limit(Record):
    """What a stage of the path can do alone, with the same records: an item of `limits` in summary.json."""

    sink: str
    """A sink, or what comes before it: "kafka" or "connect"."""
    way: str
    """How a plain client wrote or read; of "connect" the pipeline whose connector got none of the records."""
    records_per_second: Amount | None = None
    """The median of `in_blocks`; where there are none, what the search has found."""
    connections: Whole | None = None
    """Connections, consumers or tasks."""
    batch: Whole | None = None
    """Records a request, statement or COPY."""
    path: list[LimitStep] = []
    """All measurements of the search, in turn."""
    in_blocks: list[LimitInBlock] = []
    """Empty of a limit that is measured once."""
    spread: Spread | None = None
    """The records per second of `in_blocks`; None if there are none, or none was measured."""
    cpu_seconds_per_million: dict[str, Amount | None] = {}
    """The medians of `in_blocks`."""
    note: str | None = None
    """Why it could not be measured."""
