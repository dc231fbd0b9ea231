"""Charts: trials as points and stacked bars by name, and lines over a number. Names are above their points or bars,
which leaves the whole width of a phone for the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sinkbench.report.draw import WIDTH, Drawing, dashes, series, short, shortened, ticks

_LONGEST_NAME = 52
# Characters between a name and the value at the other end of its line.
_APART = 3
_ROW, _TOP, _FOOT, _SIDE = 36.0, 8.0, 36.0, 12.0
_LEAST_TICK_SHARE = 0.08
_ASIDE = 3.0
_MARK_DASHES = "8 3"


@dataclass(frozen=True)
class LineSeries:
    """A series over x; `low` and `high` are the ends of its bars, `curve` is a line without points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
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


def points(key: str, groups: Sequence[tuple[str, Sequence[Point]]], x_label: str, mark: Mark | None = None) -> str:
    """Rows below the headings of their groups: a mark for each trial, a line for the value, a colour a series."""
    rows: list[Point | str] = []
    for title, each in groups:
        rows += [*([title] if title else []), *each]
    found = [row for row in rows if isinstance(row, Point)]
    names = list(dict.fromkeys(row.series for row in found))
    known = [value for row in found for value in (row.value, *(trial for trial, _ in row.trials))]
    texts = [("", "", row) if isinstance(row, str) else (row.name, row.text, "") for row in rows]
    drawing, x, ys = _rows(key, texts, max([*known, *([mark.value] if mark else [])]) * 1.06, x_label)
    for row, y in zip(rows, ys, strict=True):
        if isinstance(row, str):
            continue
        place = names.index(row.series)
        drawing.line([(x(0), y), (WIDTH - _SIDE, y)], "grid")
        drawing.line([(x(row.value), y - 6), (x(row.value), y + 6)], series(place), 2.4)
        for value, final in row.trials:
            drawing.mark(x(value), y, place, final)
    if mark is not None:
        drawing.line([(x(mark.value), _TOP), (x(mark.value), drawing.height - _FOOT)], "limit", 1.6, _MARK_DASHES)

    def sign(left: float, y: float, place: int) -> None:
        if place < len(names):
            drawing.mark(left, y, place)
        else:
            drawing.line([(left - 14, y), (left + 12, y)], "limit", 1.6, _MARK_DASHES)

    drawing.legend([*names, *([mark.name] if mark else [])], sign)
    return drawing.svg()


def bars(
    key: str, rows: Sequence[tuple[str, Mapping[str, float]]], x_label: str, names: Sequence[str], ends: Sequence[str]
) -> str:
    """A bar per name: its parts, stacked, with a text at its end. `names` has the parts in order, for the same style
    in several charts."""
    sums = [sum(parts.values()) for _, parts in rows]
    drawing, x, ys = _rows(key, [(name, "", "") for name, _ in rows], max(sums) * 1.16, x_label)
    for (_, parts), total, end, y in zip(rows, sums, ends, ys, strict=True):
        start = 0.0
        for place, name in enumerate(names):
            if parts.get(name):
                drawing.bar(x(start), y - 7, x(start + parts[name]) - x(start), 14, place)
                start += parts[name]
        drawing.text(x(total) + 4, y + 4, end)
    drawing.legend(names, lambda left, y, place: drawing.bar(left - 13, y - 5, 26, 10, place))
    return drawing.svg()


def lines(key: str, shown: Sequence[LineSeries], x_label: str, y_label: str, x_ticks: Sequence[float]) -> str:
    """Points with bars, and curves without points; the label of y is the title. Points with the same x are drawn side
    by side, so that none hides another's bar."""
    drawing = Drawing(key, WIDTH, 260)
    most = max(value for each in shown for value in (*each.high, *(y for _, y in each.curve))) * 1.05 or 1.0
    first, last = min(x_ticks), max(x_ticks)
    x, y = _scale(first, last, 52, WIDTH - 20), _scale(0, most, 220, 22)
    drawing.text(52, 12, y_label)
    for tick in ticks(most):
        drawing.line([(52, y(tick)), (WIDTH - _SIDE, y(tick))], "grid")
        drawing.text(46, y(tick) + 4, short(tick), "end")
    for tick in far_apart(x_ticks):
        drawing.text(x(tick), 236, f"{tick:g}", "middle")
    drawing.text((52 + WIDTH) / 2, 254, x_label, "middle")
    for place, each in enumerate(shown):
        aside = (place - (len(shown) - 1) / 2) * _ASIDE
        drawing.line([(x(at), y(value)) for at, value in each.curve], series(place), 1.8, dashes(place))
        for at, value, low, high in zip(each.x, each.y, each.low, each.high, strict=True):
            drawing.line([(x(at) + aside, y(low)), (x(at) + aside, y(high))], series(place), 1.6)
            drawing.mark(x(at) + aside, y(value), place)
    drawing.legend([each.name for each in shown], drawing.mark)
    return drawing.svg()


def far_apart(shown: Sequence[float]) -> list[float]:
    """The ticks whose labels have room, from the last one down."""
    least = _LEAST_TICK_SHARE * (shown[-1] - shown[0])
    kept = [shown[-1]]
    for tick in reversed(shown[:-1]):
        if kept[-1] - tick >= least:
            kept.append(tick)
    return kept[::-1]


def _rows(
    key: str, rows: Sequence[tuple[str, str, str]], most: float, x_label: str
) -> tuple[Drawing, Callable[[float], float], list[float]]:
    """Rows with their name, a text at the other end, or a heading, above a scale from 0 to `most`; returns the scale
    and the place of each row."""
    foot = _TOP + _ROW * len(rows)
    drawing = Drawing(key, WIDTH, foot + _FOOT)
    x = _scale(0, most or 1.0, _SIDE, WIDTH - _SIDE)
    for tick in ticks(most or 1.0):
        drawing.line([(x(tick), _TOP), (x(tick), foot)], "grid")
        drawing.text(x(tick), foot + 14, short(tick), "middle")
    drawing.line([(_SIDE, foot), (WIDTH - _SIDE, foot)], "faint")
    drawing.text(WIDTH / 2, foot + 30, x_label, "middle")
    ys = []
    for place, (name, text, heading) in enumerate(rows):
        y = _TOP + _ROW * place + 25
        ys.append(y)
        drawing.text(_SIDE, y - 11, shortened(name, _LONGEST_NAME - (len(text) + _APART if text else 0)))
        drawing.text(WIDTH - _SIDE, y - 11, text, "end")
        drawing.text(_SIDE, y + 4, heading, size=9.5, bold=True)
    return drawing, x, ys


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    each = (end - start) / (high - low or 1.0)
    return lambda value: start + (value - low) * each
