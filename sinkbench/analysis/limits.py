"""The limits of a run: names of those before the sink, the best limit of a name, and a limit over its blocks."""

from collections.abc import Iterable

from sinkbench.analysis.intervals import spread_of
from sinkbench.analysis.rates import median_known
from sinkbench.results import Limit, LimitInBlock

KAFKA, CONNECT, CONNECTOR, GENERATOR = "kafka", "connect", "connector", "generator"
KAFKA_ALONE = "kafka alone"
"""Loads of a plan's `kafka`."""
CLIENT = "client"
"""The name of the plain clients among services whose CPU is counted."""


def fastest(limits: Iterable[Limit], sink: str) -> Limit | None:
    """The limit of a sink, `KAFKA` or `CONNECT` whose method was fastest in the search, even if it was disturbed in
    every block and has no rate; None if there is none."""
    return max((limit for limit in limits if limit.sink == sink and _searched(limit)), key=_searched, default=None)


def best(limits: Iterable[Limit], sink: str) -> float | None:
    found = fastest(limits, sink)
    return None if found is None else found.records_per_second


def _searched(limit: Limit) -> float:
    """The records per second that the search confirmed; for a limit without a search its rate."""
    confirmed = [step.records_per_second for step in limit.path if step.confirms and step.records_per_second]
    return (confirmed[-1] if confirmed else limit.records_per_second) or 0.0


def rates_by_block(limit: Limit) -> dict[int, float]:
    return {each.block: each.records_per_second for each in limit.in_blocks if each.records_per_second}


def with_block(limit: Limit, found: LimitInBlock) -> Limit:
    """The limit with one more measurement; the search's result is confirmed only by a block that has a rate."""
    in_blocks = [*limit.in_blocks, found]
    limit = limit.model_copy(update={"in_blocks": in_blocks})
    spread = spread_of(rates_by_block(limit))
    rated = [each for each in in_blocks if each.records_per_second]
    figures = dict.fromkeys(name for each in rated for name in each.figures)
    services = dict.fromkeys(name for each in in_blocks for name in each.cpu_seconds_per_million)
    return limit.model_copy(
        update={
            "spread": spread,
            "records_per_second": None if spread is None else round(spread.median, 1),
            "cpu_seconds_per_million": {
                name: median_known(each.cpu_seconds_per_million.get(name) for each in rated) for name in services
            },
            "figures": {name: median_known(each.figures.get(name) for each in rated) for name in figures},
            "note": found.problem if spread is None else None,
        }
    )
