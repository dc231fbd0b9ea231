"""What becomes of a load: latency, lag, queries next to it, and the search for a capacity."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sinkbench.results.base import Amount, Record, Whole
from sinkbench.results.spread import Interval

__all__ = ["Asked", "Lag", "LatencyMs", "Reads", "SearchStep"]


class LatencyMs(Record):
    """Quantiles of the latency in milliseconds; None where `count` records cannot support one."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None
    count: Whole
    """Records in the quantiles."""
    one_in: Annotated[int, Field(ge=1)] = 1
    """One in N records was read."""
    negative: Whole = 0
    """Records that were stored before they were due, by the clocks; in no quantile."""
    earliest: float | None = None
    """The longest time that one of these was stored before it was due; None if there are none, or it was not kept."""
    unknown: Whole = 0
    """Records of which it is not known when they were stored; in no quantile."""
    resolution_ms: Amount | None = None
    """To within how many milliseconds the time of storing is known, of 19 in 20 records."""
    histogram: str | None = None
    """All of them in microseconds, in HdrHistogram's own encoding (V2, compressed, base64)."""


class Lag(Record):
    """What was in the topic and not in the sink yet, while a constant load was offered; in records."""

    verdict: Literal["bounded", "growing", "cannot tell"]
    growth_per_second: float | None = None
    interval: Interval | None = None
    """Of the growth."""
    largest: int | None = None
    last: int | None = None
    """When the last record was due."""


class SearchStep(Record):
    """One load that the search for a capacity has offered, in its turn."""

    offered: Amount
    outcome: str
    """A verdict over the lag; "invalid" if there is none."""
    growth_per_second: float | None = None
    confirms: bool = False
    """Whether it was to confirm what the search had found."""
    problem: str | None = None
    """Why it was invalid."""


class Asked(Record):
    """What came of a query after a trial; of a cell, of all its trials: the worst answer and the median time."""

    query: str
    """Its name."""
    right: bool | None = None
    """Whether the answer is the one that follows from the records that were sent; None if that is not known."""
    by_index: bool | None = None
    """Whether an index finds the records, so that the sink need not read all of them; None if that is not known."""
    found: Whole | None = None
    """Records that the conditions hold for, by the sink; of a cell, in its last trial."""
    milliseconds: Amount | None = None
    """How long the answer took, on a sink that has nothing else to do."""
    rows: Whole | None = None
    """Rows of the index or table at that time, without which the time means nothing; of a cell, their median."""
    problem: str = ""
    """Why there is no answer; empty if there is one."""


class Reads(Record):
    """Queries that were asked during a load; latencies are from when one was due to its answer."""

    loaded_ms: LatencyMs | None = None
    """While the load was offered."""
    idle_ms: LatencyMs | None = None
    """After it, at the same rate, when the sink had nothing else to do."""
    failed: Whole = 0
    """Queries without an answer, in both."""
    problem: str = ""
    """What the first of them said."""
    unasked: Whole = 0
    """Queries that were due, in both, and not begun before the end, since the sink still worked at those before: their
    times are in no latency, which would be longer."""
