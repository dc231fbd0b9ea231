"""The share of records by latency, as far as the counts support it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from hdrh.histogram import HdrHistogram

from sinkbench.analysis.latency import supports
from sinkbench.metrics.format import milliseconds
from sinkbench.metrics.names import cell_name
from sinkbench.report.parts import Chart, Figure, Table
from sinkbench.report.plots import LineSeries, lines
from sinkbench.results import LatencyMs, RunSummary

_NINES = 5
_MOST_LINES = 8
# A logarithmic scale has no 0.
_LEAST_MS = 0.001
_POINTS_A_NINE = 24
_SHOWN = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999)


class _Named(NamedTuple):
    label: str
    name: str
    curve: Sequence[tuple[float, float]]


def latencies(summary: RunSummary) -> tuple[list[Figure], list[str]]:
    """The figures of the latencies until stored and until found, if any, and which data are damaged."""
    figures, damaged = [], []
    for key, until in (("stored", "stored"), ("searchable", "found by a search")):
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
    """(share, milliseconds) up to the largest share that the count of records supports, or why there is no curve."""
    try:
        histogram = HdrHistogram.decode(latency.histogram)
    # With damaged bytes the decoders of base64, zlib and HdrHistogram raise anything.
    except Exception as broken:  # noqa: BLE001
        return f"cannot be read ({type(broken).__name__})"
    count = int(histogram.get_total_count())
    grid = sorted({1 - 10 ** -(step / _POINTS_A_NINE) for step in range(_NINES * _POINTS_A_NINE + 1)} | set(_SHOWN))
    shares = [share for share in grid if share == 0 or supports(count, share)]
    # All at once: each separate call iterates over all counts.
    values = histogram.get_percentile_to_value_dict([100 * share for share in shares])
    return [(share, float(values.get(100 * share, 0)) / 1000) for share in shares]


def _figure(key: str, until: str, curves: Sequence[_Named]) -> Figure:
    # Too many lines for one chart: a chart per label.
    labels = list(dict.fromkeys(each.label for each in curves)) if len(curves) > _MOST_LINES else [None]
    groups = [[each for each in curves if label is None or each.label == label] for label in labels]
    values = [max(ms, _LEAST_MS) for each in curves for _, ms in each.curve]
    charts = []
    for place, group in enumerate(groups):
        svg = lines(
            f"latency-{key}-{place}",
            [_line(each) for each in group],
            "share of the records",
            "milliseconds",
            x_ticks=range(math.ceil(_nines(max(each.curve[-1][0] for each in curves))) + 1),
            x_text=_share,
            logarithmic=(min(values) / 1.2, max(values) * 1.2),
        )
        charts.append(Chart(f"Latency until {until}: {_told(group)}", svg))
    headers = ("cell", *(f"{_quantile(share)} ms" for share in _SHOWN))
    rows = [(each.name, *(_at(each.curve, share) for share in _SHOWN)) for each in curves]
    return Figure(
        f"Latency from when a record was due until it was {until}. The share of the records is to the right, on a "
        "scale that gives each further nine as much room. A line ends where the records are too few to say more.",
        charts,
        "Latency" if key == "stored" else "Time until found",
        Table(headers, rows, f"Latency until {until}, in milliseconds", numbers=range(1, len(headers))),
    )


def _line(found: _Named) -> LineSeries:
    shares, times = zip(*found.curve, strict=True)
    return LineSeries(found.name, [_nines(share) for share in shares], [max(ms, _LEAST_MS) for ms in times])


def _told(curves: Sequence[_Named]) -> str:
    return ", ".join(
        f"{each.name} {_at(each.curve, 0.5)} ms at the median and {_at(each.curve, 0.99)} ms at 99 %" for each in curves
    )


def _nines(share: float) -> float:
    return -math.log10(1 - share) if share < 1 else float(_NINES)


def _share(nines: float) -> str:
    return "0" if nines == 0 else _quantile(1 - 10.0**-nines)


def _quantile(share: float) -> str:
    return f"{100 * share:.6g} %"


def _at(curve: Sequence[tuple[float, float]], share: float) -> str:
    return milliseconds(next((ms for at, ms in curve if at == share), None))
