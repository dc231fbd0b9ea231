"""What Kafka alone can do: a row for each load of the plan's `kafka`."""

from rich.table import Table

from sinkbench.analysis.intervals import ratio_by_block
from sinkbench.analysis.limits import KAFKA_ALONE, rates_by_block
from sinkbench.analysis.words import NOT_MEASURED, significant, span, times, whole
from sinkbench.results import Limit, RunSummary
from sinkbench.tables.text import new_table


def kafka_table(summary: RunSummary) -> Table | None:
    """Rates with their intervals, or lowest and highest, and the ratio to the first load, block by block. None if no
    load was on Kafka alone."""
    alone = [each for each in summary.limits if each.sink == KAFKA_ALONE]
    heads = ("records/s", "", "MB/s", "times the\nfirst", "", "CPU s/\nmillion", "wire\nbytes")
    return new_table("Kafka alone", *heads, rows=[_row(each, alone[0]) for each in alone]) if alone else None


def _row(limit: Limit, first: Limit) -> tuple[str, ...]:
    spread = limit.spread
    if spread is None:
        return (limit.way, "not measured", *[""] * 6)
    ratio = ratio_by_block(first.way, rates_by_block(limit), rates_by_block(first))
    rates, ends = spread.interval or spread, None if ratio is None or limit is first else ratio.interval
    cpu = limit.cpu_seconds_per_million.get("kafka")
    return (
        limit.way,
        whole(spread.median),
        f"({span(rates.low, rates.high)})",
        significant(spread.median * (limit.record_bytes or 0) / 1e6),
        NOT_MEASURED if ratio is None else times(ratio.estimate),
        "" if ends is None else f"({times(ends.low)}-{times(ends.high)})",
        NOT_MEASURED if cpu is None else significant(cpu, 2),
        whole(limit.wire_bytes_per_record),
    )
