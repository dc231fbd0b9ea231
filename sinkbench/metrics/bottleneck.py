"""What limits a cell."""

from __future__ import annotations

from sinkbench.bottleneck.verdict import shared_cause
from sinkbench.metrics.metric import Metric, words

METRICS = (
    Metric(
        "Bottleneck",
        "What limits a cell, with the figures that show it.",
        of_cell=lambda taken: {"bottleneck": shared_cause(trial.bottleneck for trial in taken.valid or taken.trials)},
        heads=["limited by", "evidence", "also found"],
        place=270,
        exports=[words("limited_by", "bottleneck.component"), words("limited_by_cause", "bottleneck.cause")],
    ),
)
