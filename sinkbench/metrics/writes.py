"""Records per write of a connector."""

from __future__ import annotations

from sinkbench.analysis.rates import median_known
from sinkbench.metrics.format import tenths
from sinkbench.metrics.metric import ROOMY, Column, Metric, number, over
from sinkbench.metrics.rate import CELLS

METRICS = (
    Metric(
        "Records per write",
        "Stored records divided by the writes that the sink has counted.",
        of_trial=lambda seen: {"records_per_write": seen.records_per_write},
        of_cell=over(median_known, "records_per_write", of="valid"),
        columns=[
            Column(
                CELLS,
                60,
                "records\n/write",
                lambda cell, _: tenths(cell.records_per_write, 99.95),
                shown=lambda view: view.width >= ROOMY,
            )
        ],
        heads=["records/write"],
        place=140,
        exports=[number("records_per_write")],
    ),
)
