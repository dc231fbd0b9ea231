"""The three kinds of charts: lines over a number, dots with their spans by name, and stacked bars by name.

The names of rows stand above their dots or bars, not beside them, so that a phone has the whole width for the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)
from matplotlib.transforms import offset_copy

from sinkbench.report.draw import (
    FAINT,
    GRID,
    INK,
    LIMIT,
    PAPER,
    bar_rows,
    chart,
    counted,
    legend,
    looks,
    shortened,
    svg_of,
)

__all__ = ["Dot", "Line", "Mark", "bars", "dots", "far_apart", "lines"]

LOG_FROM = 30
"""Where the largest value is so many times the smallest, a linear scale hides the small ones."""
_LONGEST_NAME = 52
_LEAST_TICK_SHARE = 0.08
_ASIDE_POINTS = 3.0


@dataclass(frozen=True)
class Line:
    """A series over x. `low` and `high` are the ends of bars at its points, `curve` a second line without points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    curve: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Dot:
    """A value of the series `name` in a row, and its span."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Mark:
    """A straight line across a chart, such as a limit."""

    value: float
    name: str


def lines(
    key: str,
    series: Sequence[Line],
    x_label: str,
    y_label: str,
    mark: Mark | None = None,
    joined: bool = True,
    x_ticks: Sequence[float] = (),
    x_text: Callable[[float], str] = "{:g}".format,
    logarithmic: tuple[float, float] | None = None,
) -> str:
    """Lines with their points, `joined` to each other or only by their curves, and the label of y as their title.

    The scale of y begins at 0; where `logarithmic` has its ends, it is that. Points that are not joined stand a little
    beside each other where their x is the same, so that none hides another's bar.
    """
    shown = looks([line.name for line in series])
    points = any(len(line.x) <= 20 for line in series)
    with chart(260.0) as (figure, axes):
        for place, line in enumerate(series):
            look = shown[line.name]
            aside = 0.0 if joined else (place - (len(series) - 1) / 2) * _ASIDE_POINTS
            beside = offset_copy(axes.transData, figure, x=aside, units="points")
            axes.plot(
                line.x,
                line.y,
                color=look.colour,
                marker=look.marker if points else "",
                markersize=6,
                linestyle=look.dashes if joined else "",
                linewidth=1.8,
                label=line.name,
                transform=beside,
            )
            if line.low:
                axes.vlines(line.x, line.low, line.high, color=look.colour, linewidth=1.6, transform=beside)
                # What is drawn aside does not count for the scale otherwise.
                axes.update_datalim([*zip(line.x, line.low, strict=True), *zip(line.x, line.high, strict=True)])
                axes.autoscale_view()
            if line.curve:
                axes.plot(*zip(*line.curve, strict=True), color=look.colour, linestyle=look.dashes, linewidth=1.8)
        if logarithmic is not None:
            axes.set_yscale("log")
            axes.set_ylim(logarithmic)
            axes.yaxis.set_minor_formatter(NullFormatter())
        else:
            axes.set_ylim(bottom=0)
        _across(axes, mark)
        axes.set_xlabel(x_label)
        axes.set_title(y_label, loc="left", fontsize=11.0)
        counted(axes, "y")
        if x_ticks:
            axes.xaxis.set_major_locator(FixedLocator(far_apart(x_ticks)))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: x_text(value)))
        legend(figure, axes)
        return svg_of(figure, key)


def dots(
    key: str,
    rows: Sequence[tuple[str, Sequence[Dot]]],
    x_label: str,
    mark: Mark | None = None,
    whole: bool = False,
    ratios: bool = False,
) -> str:
    """A row for each name with its dots; on a logarithmic scale where they are too far apart for another.

    `whole` values have no fractions between them, such as connections. `ratios` are around 1 and have a logarithmic
    scale without 0, on which twice and half as much are equally far from it.
    """
    known = [value for _, row in rows for dot in row for value in (dot.value, dot.low, dot.high) if value is not None]
    shown = looks([dot.name for _, row in rows for dot in row])
    with chart(bar_rows(len(rows)), left=12.0, top=8.0) as (figure, axes):
        named: set[str] = set()
        for place, (_, row) in enumerate(rows):
            axes.axhline(place, color=GRID, linewidth=0.8)
            for dot in row:
                look = shown[dot.name]
                if dot.low is not None and dot.high is not None:
                    axes.hlines(place, dot.low, dot.high, color=look.colour, linewidth=2.2)
                label = dot.name if len(shown) > 1 and dot.name not in named else None
                named.add(dot.name)
                axes.plot(
                    [dot.value],
                    [place],
                    color=look.colour,
                    marker=look.marker,
                    markersize=7,
                    linestyle="",
                    label=label,
                    clip_on=False,
                )
        if ratios:
            _around(axes, [*known, 1.0])
        elif min(known) > 0 and max(known) / min(known) > LOG_FROM:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_xlim(min(known) * 0.8, max([*known, *([mark.value] if mark else [])]) * 1.25)
        else:
            axes.set_xlim(0, max([*known, *([mark.value] if mark else [])]) * 1.06 or 1)
        _rows(axes, [name for name, _ in rows], x_label, whole, over=ratios)
        if ratios:
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        _upright(axes, mark)
        legend(figure, axes)
        return svg_of(figure, key)


def bars(
    key: str,
    rows: Sequence[tuple[str, Mapping[str, float]]],
    x_label: str,
    text: Callable[[float], str] = "{:,.0f}".format,
    mark: Mark | None = None,
    names: Sequence[str] = (),
    whole: bool = False,
) -> str:
    """A bar for each name, of the parts it has, stacked, with their sum at its end.

    Args:
        names: of the parts, in the order in which they are stacked; so that a part looks the same in several charts.
        whole: whether the values have no fractions between them, such as tasks.
    """
    shown = looks(names or [name for _, parts in rows for name in parts])
    sums = [sum(parts.values()) for _, parts in rows]
    highest = max([*sums, *([mark.value] if mark else [])]) or 1
    with chart(bar_rows(len(rows)), left=12.0, top=8.0) as (figure, axes):
        starts = [0.0] * len(rows)
        for name, look in shown.items():
            widths = [parts.get(name, 0.0) for _, parts in rows]
            if not any(widths):
                continue
            axes.barh(
                range(len(rows)),
                widths,
                left=starts,
                height=0.4,
                color=look.colour,
                hatch=look.hatch,
                edgecolor=PAPER,
                linewidth=0.6,
                label=name if len(shown) > 1 else None,
            )
            starts = [start + width for start, width in zip(starts, widths, strict=True)]
        for place, total in enumerate(sums):
            axes.annotate(
                text(total), (total, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=10.0
            )
        axes.set_xlim(0, highest * 1.16)
        _rows(axes, [name for name, _ in rows], x_label, whole)
        _upright(axes, mark)
        legend(figure, axes)
        return svg_of(figure, key)


def far_apart(ticks: Sequence[float]) -> list[float]:
    """Those of rising ticks whose labels have room beside each other: the last, and before it each far enough."""
    least = _LEAST_TICK_SHARE * (ticks[-1] - ticks[0])
    kept = [ticks[-1]]
    for tick in reversed(ticks[:-1]):
        if kept[-1] - tick >= least:
            kept.append(tick)
    return kept[::-1]


def _rows(axes: Axes, names: Sequence[str], x_label: str, whole: bool, over: bool = False) -> None:
    """One row below the other, each with its name above it, which covers what is there if it is `over` that."""
    axes.set_ylim(len(names) - 0.5, -0.8)
    axes.yaxis.set_major_locator(NullLocator())
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    for place, name in enumerate(names):
        axes.annotate(
            shortened(name, _LONGEST_NAME),
            (0, place - 0.26),
            xycoords=("axes fraction", "data"),
            fontsize=11.0,
            color=INK,
            va="bottom",
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0} if over else None,
        )
    axes.set_xlabel(x_label)
    if whole and axes.get_xscale() == "linear":
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.spines["bottom"].set_color(FAINT)


def _around(axes: Axes, ratios: Sequence[float]) -> None:
    """A scale of x for ratios, with some room beyond the first and the last."""
    low, high = min(ratios), max(ratios)
    room = max(high / low, 1.02) ** 0.06
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    axes.xaxis.set_major_locator(LogLocator(numticks=6) if high / low > LOG_FROM else MaxNLocator(6))
    axes.xaxis.set_minor_locator(NullLocator())


def _across(axes: Axes, mark: Mark | None) -> None:
    if mark is not None:
        axes.axhline(mark.value, color=LIMIT, linewidth=1.6, linestyle=(0, (8, 3)), label=mark.name)


def _upright(axes: Axes, mark: Mark | None) -> None:
    if mark is not None:
        axes.axvline(mark.value, color=LIMIT, linewidth=1.6, linestyle=(0, (8, 3)), label=mark.name)
