"""One module per figure. To add one, write a module with its `METRICS` and add it to the list; all else follows."""

from collections.abc import Mapping, Sequence

from sinkbench.metrics import (
    audit,
    connections,
    cost,
    cpu,
    durability,
    limit,
    load,
    memory,
    queries,
    rate,
    recovery,
    tasks,
    verdict,
)
from sinkbench.metrics.metric import Metric, one_line

METHODS = "docs/methods.md"
WHERE = f"What each figure means: {METHODS}"
METRICS: Sequence[Metric] = (
    *rate.METRICS,
    *limit.RATIO,
    Metric("Course of a trial", "Records stored per second, and the lag, over the seconds of one trial."),
    *tasks.METRICS,
    *connections.METRICS,
    *cpu.METRICS,
    *memory.METRICS,
    *cost.METRICS,
    *audit.METRICS,
    *queries.METRICS,
    *durability.METRICS,
    *verdict.METRICS,
    *load.METRICS,
    *queries.READ_METRICS,
    *load.CAPACITY,
    Metric(
        "Scaling law",
        "How a pipeline's rate grows with its tasks, as a curve with three numbers.",
        heads=["fitted records/s", "one more worker"],
    ),
    *recovery.METRICS,
    *limit.METRICS,
    *verdict.BOTTLENECK,
    Metric("Change", "The rate in run B divided by the rate in run A.", heads=["B/A"]),
    Metric("Faster or slower", "Whether a cell differs between two runs by more than chance explains."),
    Metric(
        "Less or more CPU", "Whether a cell takes less or more CPU time for its records, by more than chance explains."
    ),
    Metric("Larger or smaller", "Whether a cell takes more or less memory, or disk, by more than chance explains."),
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
