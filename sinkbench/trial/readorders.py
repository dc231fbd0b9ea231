"""What the process that asks queries beside a load is told, and what it tells; both go through a socket, pickled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sinkbench.analysis.query import Query
from sinkbench.stack import Endpoints

__all__ = ["Order", "Told"]


@dataclass(frozen=True)
class Order:
    """What is asked, and where: goes through a socket, never to a command line.

    Attributes:
        queries: are asked in turn.
        rate: queries per second, all together.
    """

    endpoints: Endpoints = field(repr=False)
    checkout: Path
    sink: str
    target: str
    queries: Sequence[Query]
    rate: float


@dataclass(frozen=True)
class Told:
    """What came of it.

    Attributes:
        latencies_us: from when a query was due to its answer, in microseconds; of those that were answered.
        failed: how many were not.
        problem: what the first of these said; empty if all were answered.
        cpu_seconds: that this process took.
        unasked: queries that were due, and not begun before the end, since every connection waited for an answer.
    """

    latencies_us: Sequence[float]
    failed: int = 0
    problem: str = ""
    cpu_seconds: float = 0.0
    unasked: int = 0
