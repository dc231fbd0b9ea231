"""The limits of a run: the names of those before the sink, the best one of a name, and one over its blocks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from sinkbench.analysis.intervals import spread_of
from sinkbench.results import Limit, LimitInBlock

KAFKA, CONNECT, GENERATOR = "kafka", "connect", "generator"
CLIENT = "client"
"""The name of the plain clients among the services whose CPU is counted."""


def fastest(limits: Iterable[Limit], sink: str) -> Limit | None:
    """The limit by the way of a sink, of `KAFKA` or of `CONNECT`, that was fastest when it was searched; None if none.

    One that was disturbed in every block has no rate; a slower way does not stand in for it.
    """
    return max((limit for limit in limits if limit.sink == sink and _searched(limit)), key=_searched, default=None)


def best(limits: Iterable[Limit], sink: str) -> float | None:
    """The records per second of `fastest`, if it has any."""
    found = fastest(limits, sink)
    return None if found is None else found.records_per_second


def _searched(limit: Limit) -> float:
    """The records per second that the search has confirmed; of a limit without a search those that it has."""
    confirmed = [step.records_per_second for step in limit.path if step.confirms and step.records_per_second]
    return (confirmed[-1] if confirmed else limit.records_per_second) or 0.0


def rates_by_block(limit: Limit) -> dict[int, float]:
    """The records per second of a limit in each block that has a rate, by block."""
    return {each.block: each.records_per_second for each in limit.in_blocks if each.records_per_second}


def with_block(limit: Limit, found: LimitInBlock) -> Limit:
    """The limit with one measurement more, and its figures over all blocks so far.

    Without any block that has a rate it has none either: what the search has found was not confirmed.
    """
    in_blocks = [*limit.in_blocks, found]
    limit = limit.model_copy(update={"in_blocks": in_blocks})
    spread = spread_of(rates_by_block(limit))
    services = dict.fromkeys(name for each in in_blocks for name in each.cpu_seconds_per_million)
    return limit.model_copy(
        update={
            "spread": spread,
            "records_per_second": None if spread is None else round(spread.median, 1),
            "cpu_seconds_per_million": {name: _median_cpu(in_blocks, name) for name in services},
            "note": found.problem if spread is None else None,
        }
    )


def _median_cpu(in_blocks: Iterable[LimitInBlock], service: str) -> float | None:
    known = [each.cpu_seconds_per_million.get(service) for each in in_blocks if each.records_per_second]
    seconds = [value for value in known if value is not None]
    return statistics.median(seconds) if seconds else None
