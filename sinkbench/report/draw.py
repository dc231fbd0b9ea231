"""The look of all charts: sizes, marks that differ in more than their colour, and colours as variables of the page.

A chart is drawn as wide as a phone shows it, and a page's style gives it its colours, those for dark screens, too. So
what is drawn here has colours that only stand for variables: `--ink` and so on.
"""

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

__all__ = [
    "FAINT",
    "GRID",
    "INK",
    "LIMIT",
    "PAPER",
    "WIDTH",
    "Look",
    "bar_rows",
    "chart",
    "counted",
    "legend",
    "looks",
    "panel",
    "shortened",
    "small",
    "svg_of",
]

WIDTH = 380.0
"""Points; a phone shows it a little smaller, a desktop a little larger."""
_POINTS_AN_INCH = 72.0

INK, FAINT, GRID, PAPER, LIMIT = "#010101", "#020202", "#030303", "#040404", "#050505"
_SERIES = 8
_COLOURS = {INK: "var(--ink)", FAINT: "var(--faint)", GRID: "var(--grid)", PAPER: "var(--paper)", LIMIT: "var(--limit)"}
_COLOURS |= {f"#1000{place:02x}": f"var(--series-{place})" for place in range(_SERIES)}
_MARKERS = "osD^vPX"
# Five and seven, so that looks repeat only after 40 and 56 colours.
_DASHES: tuple[str | tuple[float, tuple[float, ...]], ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (1.5, 3)),
)
# Few dots, since each is a path of its own.
_HATCHES = ("", "////", "..", "\\\\\\\\", "xxxx", "----", "++++", "||||")
# Any, since matplotlib gives each key a type of its own.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sinkbench",
    # A label is a name that a user chose, not a formula.
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
    """How one series is told from the others: colour, marker, dashes and hatching.

    That of the series at a place, from 0. 56 have a colour and a marker that no other has.
    """

    def __init__(self, place: int) -> None:
        self.colour = f"#1000{place % _SERIES:02x}"
        self.marker = _MARKERS[place % len(_MARKERS)]
        self.dashes = _DASHES[place % len(_DASHES)]
        self.hatch = _HATCHES[place % len(_HATCHES)]


def looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for each name, in their order."""
    return {name: Look(place) for place, name in enumerate(dict.fromkeys(names))}


@contextmanager
def chart(height: float, left: float = 52.0, bottom: float = 40.0, top: float = 22.0) -> Iterator[tuple[Figure, Axes]]:
    """A chart of one pair of axes, so many points high, with so much room around the axes for what is written there."""
    with mpl.rc_context(_STYLE):
        figure = _figure(WIDTH, height)
        axes = figure.add_axes(
            (left / WIDTH, bottom / height, 1 - (left + 12) / WIDTH, 1 - (bottom + top) / height), facecolor="none"
        )
        _plain(axes)
        yield figure, axes


@contextmanager
def panel(width: float, height: float, rows: int) -> Iterator[tuple[Figure, list[Axes]]]:
    """A small chart of so many axes above each other, with a title's room over each."""
    with mpl.rc_context({**_STYLE, "font.size": 10.0}):
        figure = _figure(width, height)
        foot, each = 18.0, (height - 18.0) / rows
        made = []
        for row in range(rows):
            bottom = foot + (rows - 1 - row) * each + (0 if row == rows - 1 else 4)
            size = each - 18.0 - (0 if row == rows - 1 else 4)
            axes = figure.add_axes((40 / width, bottom / height, 1 - 50 / width, size / height), facecolor="none")
            _plain(axes)
            made.append(axes)
        yield figure, made


def legend(figure: Figure, axes: Axes, most: int = 46) -> None:
    """Names the series, one a line, below the axes: the figure grows by as much, so that nothing is covered."""
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
        [shortened(name, most) for name in names],
        loc="lower left",
        bbox_to_anchor=(0.0, 0.0),
        frameon=False,
        borderpad=0.2,
        labelspacing=0.35,
        handlelength=2.6,
    )


def bar_rows(count: int) -> float:
    """How many points high a chart of so many named bars is, one below the other, without its legend."""
    return 62.0 + 36.0 * count


def counted(axes: Axes, which: str) -> None:
    """Labels an axis `x` or `y` of amounts as 5 k and 2 M."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(EngFormatter(sep=" "))


def small(axes: Axes) -> None:
    """Gives a pair of axes in a panel few ticks, with short labels."""
    axes.yaxis.set_major_locator(MaxNLocator(2))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g} s"))


def shortened(name: str, most: int) -> str:
    """A name on one line with at most so many characters, its middle left out: at its end stand the tasks.

    What cannot be printed becomes a question mark, since a picture is XML, which may not hold it.
    """
    name = "".join(each if each.isprintable() else "?" for each in " ".join(name.split()))
    end = most // 3
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[-end:]}"


def svg_of(figure: Figure, key: str) -> str:
    """The figure as an element for the page; `key` is unlike that of every other one."""
    text = io.StringIO()
    with warnings.catch_warnings():
        # Letters that matplotlib has no font for: the browser draws them, and has one.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(text, format="svg")
    return inlined(text.getvalue(), key, _COLOURS)


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width / _POINTS_AN_INCH, height / _POINTS_AN_INCH), dpi=_POINTS_AN_INCH)
    figure.patch.set_visible(False)
    return figure


def _plain(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.grid(visible=True, axis="y")
