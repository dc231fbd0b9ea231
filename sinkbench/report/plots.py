"""Charts: lines over a number, trials as points by name, and stacked bars by name. Names are above their dots or
bars, which leaves the whole width of a phone for the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.transforms import offset_copy

from sinkbench.report.draw import GRID, LIMIT, PAPER, chart, legend, looks, shortened, svg_of

_LONGEST_NAME = 52
# Characters between a name and the value at the other end of its line.
_APART = 3
_LEAST_TICK_SHARE = 0.08
_ASIDE_POINTS = 3.0
# Any, since matplotlib gives each key a different type.
_LIMIT_LINE: dict[str, Any] = {"color": LIMIT, "linewidth": 1.6, "linestyle": (0, (8, 3))}


@dataclass(frozen=True)
class LineSeries:
    """A series over x; `low` and `high` are the ends of error bars, `curve` is a line without points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    curve: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Point:
    """A row of `points`: the value and its text, and the values of trials, with whether each is final."""

    name: str
    series: str
    text: str
    value: float
    trials: Sequence[tuple[float, bool]] = ()


@dataclass(frozen=True)
class Mark:
    value: float
    name: str


def lines(
    key: str,
    series: Sequence[LineSeries],
    x_label: str,
    y_label: str,
    mark: Mark | None = None,
    joined: bool = True,
    x_ticks: Sequence[float] = (),
    x_text: Callable[[float], str] = "{:g}".format,
    logarithmic: tuple[float, float] | None = None,
) -> str:
    """Lines with their points, `joined` to each other or only by their curves; the label of y is the title. The
    scale of y begins at 0, or is logarithmic between the ends given. Unjoined points with the same x are drawn side
    by side, so that none hides another's bar."""
    shown = looks([line.name for line in series])
    points = any(len(line.x) <= 20 for line in series)
    with chart() as (figure, axes):
        for place, line in enumerate(series):
            look = shown[line.name]
            aside = 0.0 if joined else (place - (len(series) - 1) / 2) * _ASIDE_POINTS
            shifted = offset_copy(axes.transData, figure, x=aside, units="points")
            axes.plot(
                line.x,
                line.y,
                color=look.colour,
                marker=look.marker if points else "",
                markersize=6,
                linestyle=look.dashes if joined else "",
                linewidth=1.8,
                label=line.name,
                transform=shifted,
            )
            if line.low:
                axes.vlines(line.x, line.low, line.high, color=look.colour, linewidth=1.6, transform=shifted)
                # Otherwise the scale ignores the bars of shifted points.
                axes.update_datalim([*zip(line.x, line.low, strict=True), *zip(line.x, line.high, strict=True)])
                axes.autoscale_view()
            if line.curve:
                axes.plot(*zip(*line.curve, strict=True), color=look.colour, linestyle=look.dashes, linewidth=1.8)
        if logarithmic is not None:
            axes.set_yscale("log")
            axes.set_ylim(logarithmic)
            axes.yaxis.set_minor_formatter(ticker.NullFormatter())
        else:
            axes.set_ylim(bottom=0)
        if mark is not None:
            axes.axhline(mark.value, label=mark.name, **_LIMIT_LINE)
        axes.set_xlabel(x_label)
        axes.set_title(y_label, loc="left", fontsize=11.0)
        axes.yaxis.set_major_formatter(ticker.EngFormatter(sep=" "))
        if x_ticks:
            axes.xaxis.set_major_locator(ticker.FixedLocator(far_apart(x_ticks)))
            axes.xaxis.set_minor_locator(ticker.NullLocator())
            axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: x_text(value)))
        legend(figure, axes)
        return svg_of(figure, key)


def points(key: str, groups: Sequence[tuple[str, Sequence[Point]]], x_label: str, mark: Mark | None = None) -> str:
    """Rows below the headings of their groups: a dot for each trial, a line for the value, a colour a series."""
    rows: list[Point | str] = []
    for title, each in groups:
        rows += [*([title] if title else []), *each]
    found = [row for row in rows if isinstance(row, Point)]
    shown = looks([row.series for row in found])
    known = [value for row in found for value in (row.value, *(trial for trial, _ in row.trials))]
    highest = max([*known, *([mark.value] if mark else [])]) or 1.0
    with chart(len(rows)) as (figure, axes):
        for place, row in enumerate(rows):
            if isinstance(row, str):
                axes.annotate(row, (0, place + 0.1), xycoords=("axes fraction", "data"), weight="bold", fontsize=9.5)
                continue
            look = shown[row.series]
            axes.axhline(place, color=GRID, linewidth=0.8)
            axes.vlines(row.value, place - 0.17, place + 0.17, color=look.colour, linewidth=2.4)
            for value, final in row.trials:
                face = look.colour if final else PAPER
                axes.plot(
                    value, place, look.marker, color=look.colour, markerfacecolor=face, markersize=6, clip_on=False
                )
        for name, look in shown.items():
            axes.plot([], [], look.marker, color=look.colour, label=name)
        axes.set_xlim(0, highest * 1.06)
        names, texts = ([getattr(row, part, "") for row in rows] for part in ("name", "text"))
        _rows(axes, names, x_label, mark, texts=texts)
        legend(figure, axes)
        return svg_of(figure, key)


def bars(
    key: str,
    rows: Sequence[tuple[str, Mapping[str, float]]],
    x_label: str,
    text: Callable[[float], str] = "{:,.0f}".format,
    names: Sequence[str] = (),
) -> str:
    """A bar per name: its parts, stacked, with their sum at its end. `names` has the parts in order, for the same style
    in several charts."""
    shown = looks(names or [name for _, parts in rows for name in parts])
    sums = [sum(parts.values()) for _, parts in rows]
    highest = max(sums) or 1
    with chart(len(rows)) as (figure, axes):
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
        for place, (total, end) in enumerate(zip(sums, map(text, sums), strict=True)):
            axes.annotate(end, (total, place), xytext=(4, 0), textcoords="offset points", va="center")
        axes.set_xlim(0, highest * 1.16)
        _rows(axes, [name for name, _ in rows], x_label, None)
        legend(figure, axes)
        return svg_of(figure, key)


def far_apart(ticks: Sequence[float]) -> list[float]:
    """The ticks whose labels have room, from the last one down."""
    least = _LEAST_TICK_SHARE * (ticks[-1] - ticks[0])
    kept = [ticks[-1]]
    for tick in reversed(ticks[:-1]):
        if kept[-1] - tick >= least:
            kept.append(tick)
    return kept[::-1]


def _rows(
    axes: Axes,
    names: Sequence[str],
    x_label: str,
    mark: Mark | None,
    texts: Sequence[str] = (),
) -> None:
    """Rows with their names above them, texts at the other end, and a mark across all of them."""
    axes.set_ylim(len(names) - 0.5, -0.8)
    axes.yaxis.set_major_locator(ticker.NullLocator())
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    for place, name in enumerate(names):
        axes.annotate(
            shortened(name, _LONGEST_NAME - (len(texts[place]) + _APART if texts else 0)),
            (0, place - 0.26),
            xycoords=("axes fraction", "data"),
            va="bottom",
        )
    for place, text in enumerate(texts):
        axes.annotate(text, (1, place - 0.26), xycoords=("axes fraction", "data"), va="bottom", ha="right")
    axes.set_xlabel(x_label)
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=" "))
    if mark is not None:
        axes.axvline(mark.value, label=mark.name, **_LIMIT_LINE)
