"""One module per figure. To add one, write a module with its `METRICS` and add it to the list below; tables,
reports, exports and summaries follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sinkbench.metrics import (
    audit,
    bottleneck,
    changes,
    connections,
    cost,
    cpu,
    disk,
    durability,
    latency,
    limit,
    load,
    memory,
    ofruns,
    pool,
    queries,
    rate,
    ratio,
    recovery,
    rescale,
    tasks,
    verdict,
)
from sinkbench.metrics.metric import Metric, one_line

METHODS = "docs/methods.md"
WHERE = f"What each figure means: {METHODS}"
METRICS: Sequence[Metric] = (
    *rate.METRICS,
    *ratio.METRICS,
    ofruns.COURSE,
    *tasks.METRICS,
    *connections.METRICS,
    *pool.METRICS,
    *cpu.METRICS,
    *memory.METRICS,
    *disk.METRICS,
    *cost.METRICS,
    *audit.METRICS,
    *changes.METRICS,
    *queries.METRICS,
    *durability.METRICS,
    *verdict.METRICS,
    *load.METRICS,
    *latency.METRICS,
    *queries.READ_METRICS,
    *load.CAPACITY,
    ofruns.SCALING,
    *rescale.METRICS,
    *recovery.METRICS,
    *limit.METRICS,
    *bottleneck.METRICS,
    *ofruns.COMPARISON,
)
"""All figures, in the order of docs/methods.md."""

MEANINGS: Mapping[str, str] = {each.heading: each.meaning for each in METRICS if each.meaning}
"""The first sentence of each heading in docs/methods.md, so that a report explains its figures by itself."""

COLUMNS: Mapping[str, str] = {
    head: each.heading
    # Of figures that share a head the first one counts.
    for each in reversed(METRICS)
    for head in (*(one_line(column.head) for column in each.columns if isinstance(column.head, str)), *each.heads)
}
"""The heading of each column's figure, by the column's head in one line."""


def anchor(heading: str) -> str:
    """The anchor of a heading on GitHub and GitLab: `records-per-second`."""
    kept = (letter for letter in heading.lower() if letter.isalnum() or letter in " -_")
    return "".join(kept).replace(" ", "-")
