"""The style of all charts: as wide as a phone, marks that differ in more than colour, and colours such as `--ink`
that are variables of the page's style, also for dark mode."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from sinkbench.report.svg import inlined

# Points; a phone shows it slightly smaller, a desktop slightly larger.
_WIDTH = 380.0
_LONGEST_SERIES = 46
_POINTS_AN_INCH = 72.0

INK, FAINT, GRID, PAPER, LIMIT = "#010101", "#020202", "#030303", "#040404", "#050505"
_SERIES = 8
_COLOURS = {INK: "var(--ink)", FAINT: "var(--faint)", GRID: "var(--grid)", PAPER: "var(--paper)", LIMIT: "var(--limit)"}
_COLOURS |= {f"#1000{place:02x}": f"var(--series-{place})" for place in range(_SERIES)}
_MARKERS = "osD^vPX"
# Five dashes and seven markers, so that styles repeat only after 40 and 56 series.
_DASHES: tuple[str | tuple[float, tuple[float, ...]], ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (1.5, 3)),
)
# Few dots, since each is a separate path.
_HATCHES = ("", "////", "..", "\\\\\\\\", "xxxx", "----", "++++", "||||")
# Any, since matplotlib gives each key a different type.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sinkbench",
    # A label is a name chosen by a user, not a formula.
    "text.parse_math": False,
    "axes.unicode_minus": False,
    "font.size": 11.0,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 3.0,
    "ytick.major.size": 0.0,
    "ytick.minor.size": 0.0,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.linewidth": 0.8,
    "path.simplify_threshold": 0.3,
}


class Look:
    """The style of a series by its index; 56 series have distinct colours and markers."""

    def __init__(self, place: int) -> None:
        self.colour = f"#1000{place % _SERIES:02x}"
        self.marker = _MARKERS[place % len(_MARKERS)]
        self.dashes = _DASHES[place % len(_DASHES)]
        self.hatch = _HATCHES[place % len(_HATCHES)]


def looks(names: Sequence[str]) -> dict[str, Look]:
    return {name: Look(place) for place, name in enumerate(dict.fromkeys(names))}


@contextmanager
def chart(rows: int = 0) -> Iterator[tuple[Figure, Axes]]:
    """A chart with one pair of axes: for N named rows, or for lines with a title and a scale on the left."""
    height, left, bottom, top = (62.0 + 36.0 * rows, 12.0, 40.0, 8.0) if rows else (260.0, 52.0, 40.0, 22.0)
    with mpl.rc_context(_STYLE):
        figure = _figure(_WIDTH, height)
        place = (left / _WIDTH, bottom / height, 1 - (left + 12) / _WIDTH, 1 - (bottom + top) / height)
        yield figure, _axes(figure, place)


@contextmanager
def panel(width: float, height: float, rows: int) -> Iterator[tuple[Figure, list[Axes]]]:
    """A small chart of `rows` pairs of axes, one above the other, each with room for a title."""
    with mpl.rc_context({**_STYLE, "font.size": 10.0}):
        figure = _figure(width, height)
        foot, each = 18.0, (height - 18.0) / rows
        made = []
        for row in range(rows):
            apart = 0 if row == rows - 1 else 4
            bottom, size = foot + (rows - 1 - row) * each + apart, each - 18.0 - apart
            made.append(_axes(figure, (40 / width, bottom / height, 1 - 50 / width, size / height)))
        yield figure, made


def legend(figure: Figure, axes: Axes) -> None:
    """Names the series, one per line, below the axes; the figure grows accordingly."""
    handles, names = axes.get_legend_handles_labels()
    if not handles:
        return
    line, height = 16.0, figure.get_figheight() * _POINTS_AN_INCH
    more = line * len(handles) + 6
    box = axes.get_position()
    figure.set_figheight((height + more) / _POINTS_AN_INCH)
    share = height / (height + more)
    axes.set_position((box.x0, 1 - (1 - box.y0) * share, box.width, box.height * share))
    figure.legend(
        handles,
        [shortened(name, _LONGEST_SERIES) for name in names],
        loc="lower left",
        bbox_to_anchor=(0.0, 0.0),
        frameon=False,
        borderpad=0.2,
        labelspacing=0.35,
        handlelength=2.6,
    )


def small(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(2))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g} s"))


def shortened(name: str, most: int) -> str:
    """A name of at most `most` characters, shortened in the middle, since it ends in the tasks; printable, as XML
    requires."""
    name = "".join(each if each.isprintable() else "?" for each in " ".join(name.split()))
    end = most // 3
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[-end:]}"


def svg_of(figure: Figure, key: str) -> str:
    """The figure as an element of the page; `key` is unique on it."""
    text = io.StringIO()
    with warnings.catch_warnings():
        # The browser draws the letters, and has fonts that matplotlib lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(text, format="svg")
    return inlined(text.getvalue(), key, _COLOURS)


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width / _POINTS_AN_INCH, height / _POINTS_AN_INCH), dpi=_POINTS_AN_INCH)
    figure.patch.set_visible(False)
    return figure


def _axes(figure: Figure, place: tuple[float, float, float, float]) -> Axes:
    axes = figure.add_axes(place, facecolor="none")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(visible=True, axis="y")
    return axes
