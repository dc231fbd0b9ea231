"""Charts: lines over a number, dots with ranges by name, and stacked bars by name. Names are above their dots or
bars, which leaves the whole width of a phone for the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.transforms import offset_copy

from sinkbench.report.draw import GRID, LIMIT, PAPER, chart, legend, looks, shortened, svg_of

# A linear scale hides values that are N times smaller than the largest.
LOG_FROM = 30
# A longer logarithmic scale has room only for powers of ten.
_SEVERAL_TICKS_BELOW = 300
_LONGEST_NAME = 52
# Characters between a name and the value at the other end of its line.
_APART = 3
_LEAST_TICK_SHARE = 0.08
_ASIDE_POINTS = 3.0
# Any, since matplotlib gives each key a different type.
_OPEN = (0, (1.5, 2.5))
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
class Dot:
    """A value of the series `name`, and its range; `least` means a lower bound."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    least: bool = False


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


def dots(
    key: str,
    rows: Sequence[tuple[str, Sequence[Dot]]],
    x_label: str,
    mark: Mark | None = None,
    whole: bool = False,
    ratios: bool = False,
    texts: Sequence[str] = (),
    names: Sequence[str] = (),
) -> str:
    """A row per name with its dots, on a logarithmic scale if they are far apart.

    `texts` are at the end of the names' lines. `names` has the series in order, for the same style in several charts.
    `whole` values have no fractions, such as connections. `ratios` use a logarithmic scale without 0, on which twice
    and half as much are equally far from 1.
    """
    known = [value for _, row in rows for dot in row for value in (dot.value, dot.low, dot.high) if value is not None]
    highest = max([*known, *([mark.value] if mark else [])])
    present = {dot.name for _, row in rows for dot in row}
    shown = looks(names or [dot.name for _, row in rows for dot in row])
    with chart(len(rows)) as (figure, axes):
        for place in range(len(rows)):
            axes.axhline(place, color=GRID, linewidth=0.8)
        for name, look in shown.items():
            found = [(place, dot) for place, (_, row) in enumerate(rows) for dot in row if dot.name == name]
            if not found:
                continue
            # An open arrow: it differs from every quotable value, also without colours.
            open_ended = all(dot.least for _, dot in found)
            for place, dot in found:
                if dot.low is not None and dot.high is not None:
                    axes.hlines(place, dot.low, dot.high, color=look.colour, linewidth=2.2)
            axes.plot(
                [dot.value for _, dot in found],
                [place for place, _ in found],
                color=look.colour,
                marker=">" if open_ended else look.marker,
                markersize=8 if open_ended else 7,
                markerfacecolor=PAPER if open_ended else look.colour,
                linestyle="",
                label=name if len(present) > 1 or open_ended else None,
                clip_on=False,
                zorder=3,
            )
        if ratios:
            _around(axes, [*known, 1.0])
        elif min(known) > 0 and max(known) / min(known) > LOG_FROM:
            axes.set_xscale("log")
            if max(known) / min(known) < _SEVERAL_TICKS_BELOW:
                axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.xaxis.set_minor_formatter(ticker.NullFormatter())
            axes.set_xlim(min(known) * 0.8, highest * 1.25)
        else:
            axes.set_xlim(0, highest * 1.06 or 1)
        end = axes.get_xlim()[1]
        for place, (_, row) in enumerate(rows):
            for dot in row:
                if dot.least:
                    axes.hlines(place, dot.value, end, color=shown[dot.name].colour, linewidth=1.4, linestyle=_OPEN)
        _rows(axes, [name for name, _ in rows], x_label, mark, whole, over=ratios, texts=texts)
        if ratios:
            axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
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
    ends: Sequence[str] = (),
) -> str:
    """A bar per name: its parts, stacked, with their sum or the text from `ends` at its end. `names` has the parts
    in order, for the same style in several charts; `whole` values have no fractions."""
    shown = looks(names or [name for _, parts in rows for name in parts])
    sums = [sum(parts.values()) for _, parts in rows]
    highest = max([*sums, *([mark.value] if mark else [])]) or 1
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
        for place, (total, end) in enumerate(zip(sums, ends or map(text, sums), strict=True)):
            axes.annotate(end, (total, place), xytext=(4, 0), textcoords="offset points", va="center")
        axes.set_xlim(0, highest * 1.16)
        _rows(axes, [name for name, _ in rows], x_label, mark, whole)
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
    whole: bool,
    over: bool = False,
    texts: Sequence[str] = (),
) -> None:
    """Rows with their names above them, or `over` what is drawn there, and a mark across all of them."""
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
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0} if over else None,
        )
    for place, text in enumerate(texts):
        axes.annotate(text, (1, place - 0.26), xycoords=("axes fraction", "data"), va="bottom", ha="right")
    axes.set_xlabel(x_label)
    if whole and axes.get_xscale() == "linear":
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=" "))
    if mark is not None:
        axes.axvline(mark.value, label=mark.name, **_LIMIT_LINE)


def _around(axes: Axes, ratios: Sequence[float]) -> None:
    low, high = min(ratios), max(ratios)
    room = max(high / low, 1.02) ** 0.06
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    axes.xaxis.set_major_locator(ticker.LogLocator(numticks=6) if high / low > LOG_FROM else ticker.MaxNLocator(6))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
