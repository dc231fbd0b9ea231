"""What limits a cell."""

from __future__ import annotations

from sinkbench.bottleneck.rules import causes_of, shared_cause
from sinkbench.metrics.metric import Export, Metric
from sinkbench.results import CellSummary


def _named(cell: CellSummary, place: int) -> str | None:
    """Components (0) or causes (1), two where the figures do not decide."""
    found = [] if cell.bottleneck is None else causes_of(cell.bottleneck)
    return " or ".join(dict.fromkeys(each[place] for each in found)) or None


METRICS = (
    Metric(
        "Bottleneck",
        "What limits a cell, with the figures that show it.",
        of_cell=lambda taken: {"bottleneck": shared_cause(trial.bottleneck for trial in taken.valid or taken.trials)},
        heads=["limited by", "evidence", "also found"],
        place=270,
        exports=[
            Export("limited_by", "VARCHAR", lambda cell, _: _named(cell, 0)),
            Export("limited_by_cause", "VARCHAR", lambda cell, _: _named(cell, 1)),
        ],
    ),
)
