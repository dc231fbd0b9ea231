"""How late records came: what share of them had come after how long, to the last that the counts support."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from hdrh.histogram import HdrHistogram

from loadgen.latency import supports
from sinkbench.columns import NOT_MEASURED
from sinkbench.report.parts import Chart, Figure, Table
from sinkbench.report.plots import Line, lines
from sinkbench.results import LatencyMs, RunSummary
from sinkbench.table import cell_name

__all__ = ["curve_of", "latencies"]

_NINES = 5
_MOST_LINES = 8
# A logarithm has no 0.
_LEAST_MS = 0.001
_POINTS_A_NINE = 24
_SHOWN = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999)


class _Named(NamedTuple):
    """The curve of one cell: (share, milliseconds)."""

    label: str
    name: str
    curve: Sequence[tuple[float, float]]


def latencies(summary: RunSummary) -> tuple[list[Figure], list[str]]:
    """A figure for records stored and one for records found, as far as the run has latencies; and what is damaged."""
    figures, damaged = [], []
    kinds = (("stored", "stored"), ("searchable", "found by a search"))
    for key, until in kinds:
        curves = []
        for cell in summary.cells:
            latency = cell.latency_ms if key == "stored" else cell.searchable_ms
            if latency is None or not latency.count or latency.histogram is None:
                continue
            name, curve = cell_name(cell, summary), curve_of(latency)
            if isinstance(curve, str):
                damaged.append(f"{name}: the histogram of latencies (until {until}) {curve}")
            elif curve:
                curves.append(_Named(cell.label, name, curve))
        if curves:
            figures.append(_figure(key, until, curves))
    return figures, damaged


def curve_of(latency: LatencyMs) -> list[tuple[float, float]] | str:
    """(share, milliseconds) from none to the largest share that so many records support, or why there is no curve."""
    try:
        histogram = HdrHistogram.decode(latency.histogram)
    # Whatever bytes make the decoders of base64, zlib and HdrHistogram raise.
    except Exception as broken:  # noqa: BLE001
        return f"cannot be read ({type(broken).__name__})"
    count = int(histogram.get_total_count())
    grid = sorted({1 - 10 ** -(step / _POINTS_A_NINE) for step in range(_NINES * _POINTS_A_NINE + 1)} | set(_SHOWN))
    return [
        (share, float(histogram.get_value_at_percentile(100 * share)) / 1000)
        for share in grid
        if share == 0 or supports(count, share)
    ]


def _figure(key: str, until: str, curves: Sequence[_Named]) -> Figure:
    # More lines than can be told apart get a chart for each label.
    labels = list(dict.fromkeys(each.label for each in curves)) if len(curves) > _MOST_LINES else [None]
    groups = [[each for each in curves if label is None or each.label == label] for label in labels]
    rows = [(each.name, *(_at(each.curve, share) for share in _SHOWN)) for each in curves]
    values = [max(ms, _LEAST_MS) for each in curves for _, ms in each.curve]
    nines = range(math.ceil(_nines(max(each.curve[-1][0] for each in curves))) + 1)
    span = (min(values) / 1.2, max(values) * 1.2)
    return Figure(
        caption=(
            f"Latency from when a record was due until it was {until}. The share of the records is to the right, on a "
            "scale that gives each further nine as much room. A line ends where the records are too few to say more."
        ),
        charts=[
            Chart(
                label=f"Latency until {until}: {_told(group)}",
                svg=lines(
                    f"latency-{key}-{place}",
                    [
                        Line(
                            each.name,
                            [_nines(share) for share, _ in each.curve],
                            [max(ms, _LEAST_MS) for _, ms in each.curve],
                        )
                        for each in group
                    ],
                    "share of the records",
                    "milliseconds",
                    x_ticks=list(nines),
                    x_text=_share,
                    logarithmic=span,
                ),
            )
            for place, group in enumerate(groups)
        ],
        table=Table(
            headers=("cell", *(f"{_percent(share)} ms" for share in _SHOWN)),
            rows=rows,
            caption=f"Latency until {until}, in milliseconds",
            numbers=frozenset(range(1, len(_SHOWN) + 1)),
        ),
    )


def _told(curves: Sequence[_Named]) -> str:
    return ", ".join(
        f"{each.name} {_at(each.curve, 0.5)} ms at the median and {_at(each.curve, 0.99)} ms at 99 %" for each in curves
    )


def _nines(share: float) -> float:
    return -math.log10(1 - share) if share < 1 else float(_NINES)


def _share(nines: float) -> str:
    return "0" if nines == 0 else _percent(1 - 10.0**-nines)


def _percent(share: float) -> str:
    return f"{100 * share:.6g} %"


def _at(curve: Sequence[tuple[float, float]], share: float) -> str:
    found = next((ms for at, ms in curve if at == share), None)
    if found is None:
        return NOT_MEASURED
    return f"{found:,.0f}" if found >= 99.5 else f"{found:.1f}" if found >= 1 else f"{found:.2f}"
