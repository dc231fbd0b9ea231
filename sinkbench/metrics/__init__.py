"""One module a figure: how trials become a cell's figure, where it is shown, and the sentence that says what it means.

To add a figure, write a module with its `METRICS` and add it to the list below; tables, reports, exports and summaries
follow.
"""

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
    foreign,
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
    writes,
)
from sinkbench.metrics.metric import Metric, one_line

METHODS = "docs/methods.md"
WHERE = f"What each figure means: {METHODS}"
"""The last line below a table in the terminal."""

METRICS: Sequence[Metric] = (
    *rate.METRICS,
    *ratio.METRICS,
    ofruns.ATTRIBUTION,
    ofruns.COURSE,
    *tasks.METRICS,
    *writes.METRICS,
    *connections.METRICS,
    *pool.METRICS,
    *cpu.METRICS,
    *foreign.METRICS,
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
"""What a figure is, by its heading in docs/methods.md: the first sentence there. A report is opened far from it."""

COLUMNS: Mapping[str, str] = {
    head: each.heading
    # Of figures that share a head the first one counts.
    for each in reversed(METRICS)
    for head in (*(one_line(column.head) for column in each.columns if isinstance(column.head, str)), *each.heads)
}
"""The heading of each column that has a figure, by the column's own head in one line."""


def anchor(heading: str) -> str:
    """The end of a heading's address, as GitHub and GitLab make it: `records-per-second`."""
    kept = (letter for letter in heading.lower() if letter.isalnum() or letter in " -_")
    return "".join(kept).replace(" ", "-")
