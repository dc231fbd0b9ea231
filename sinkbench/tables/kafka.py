"""What Kafka alone can do: a row for each load of the plan's `kafka`."""

from rich.table import Table

from sinkbench.analysis.intervals import ratio_by_block
from sinkbench.analysis.limits import KAFKA_ALONE, rates_by_block
from sinkbench.analysis.words import NOT_MEASURED, significant, span, times, whole
from sinkbench.results import Limit, RunSummary
from sinkbench.tables.text import new_table


def kafka_table(summary: RunSummary) -> Table | None:
    """Rates with their intervals, or lowest and highest, and ratio to the first load, by block; None without loads."""
    alone = [each for each in summary.limits if each.sink == KAFKA_ALONE]
    heads = ("records/s", "", "MB/s", "times the\nfirst", "", "CPU s/\nmillion", "brokers'")
    return new_table("Kafka alone", *heads, rows=[_row(each, alone[0]) for each in alone]) if alone else None


def _row(limit: Limit, first: Limit) -> tuple[str, ...]:
    rate, spread = limit.records_per_second, limit.spread
    if rate is None:
        return (limit.way, "not measured", *[""] * 6)
    ends = spread.interval or spread if spread is not None and len(spread.values) > 1 else None
    ratio = ratio_by_block(first.way, rates_by_block(limit), rates_by_block(first))
    around = None if ratio is None or limit is first else ratio.interval
    used = limit.cpu_seconds_per_million
    cpu = [sum(filter(None, used.values())) if used else None, used.get("kafka")]
    return (
        limit.way,
        whole(rate),
        "" if ends is None else f"({span(ends.low, ends.high)})",
        significant(rate * (limit.record_bytes or 0) / 1e6),
        NOT_MEASURED if ratio is None else times(ratio.estimate),
        "" if around is None else f"({times(around.low)}-{times(around.high)})",
        *(NOT_MEASURED if each is None else significant(each, 2) for each in cpu),
    )
