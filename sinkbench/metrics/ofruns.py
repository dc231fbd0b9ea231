"""Figures of a whole run, or of two runs."""

from __future__ import annotations

from sinkbench.metrics.metric import Metric

COURSE = Metric("Course of a trial", "Records stored per second, and the lag, over the seconds of one trial.")
SCALING = Metric(
    "Scaling law",
    "How a pipeline's rate grows with its tasks, as a curve with three numbers.",
    heads=["fitted records/s", "one more worker"],
)
COMPARISON = (
    Metric("Change", "The rate in run B divided by the rate in run A.", heads=["B/A"]),
    Metric("Faster or slower", "Whether a cell differs between two runs by more than chance explains."),
    Metric(
        "Less or more CPU", "Whether a cell takes less or more CPU time for its records, by more than chance explains."
    ),
    Metric("Larger or smaller", "Whether a cell takes more or less memory, or disk, by more than chance explains."),
)
