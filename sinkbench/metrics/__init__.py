"""One module per figure. To add one, write a module with its `METRICS`, list it, and add its meaning to the file."""

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files

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
    *tasks.METRICS,
    *connections.METRICS,
    *cpu.METRICS,
    *memory.METRICS,
    *cost.METRICS,
    *audit.METRICS,
    *durability.METRICS,
    *verdict.METRICS,
    *load.METRICS,
    *queries.METRICS,
    Metric("Scaling law", heads=["fitted records/s", "one more worker"]),
    *recovery.METRICS,
    *limit.METRICS,
    Metric("Change", heads=["B/A"]),
)
"""All figures."""

MEANINGS: Mapping[str, str] = tomllib.loads(files("sinkbench.metrics").joinpath("meanings.toml").read_text("utf-8"))
"""The first sentence of each heading in docs/methods.md, in its order, for reports."""

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
