"""Charts as SVG, as wide as a phone, in the page's font and colours; series differ in more than colour."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 380.0
_LONGEST_SERIES = 46
_COLOURS = 8
_LEGEND_LINE = 16.0
_DASHES = ("", "5 2", "1.5 1.5", "6 2 1.5 2", "1.5 3")
_MARKS = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z",
    "M-3-3H3V3H-3Z",
    "M0-4.2L4.2 0 0 4.2-4.2 0Z",
    "M0-4L4 3H-4Z",
    "M0 4L4-3H-4Z",
    "M-1.3-4H1.3V-1.3H4V1.3H1.3V4H-1.3V1.3H-4V-1.3H-1.3Z",
    "M0-4L4-1 2.5 4H-2.5L-4-1Z",
)
Points = Iterable[tuple[float, float]]


class Drawing:
    """An <svg> element, hidden from screen readers, which read the text around it; `key` is unique on the page."""

    def __init__(self, key: str, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._key = key
        self._parts: list[str] = []
        self._patterns: dict[int, str] = {}

    def text(self, x: float, y: float, text: str, anchor: str = "start", size: float = 11, bold: bool = False) -> None:
        weight = ' font-weight="bold"' if bold else ""
        shape = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}"{weight}'
        self._parts.append(f'<text {shape} style="fill:var(--ink)">{escape(shortened(text, 80))}</text>')

    def line(self, points: Points, colour: str, width: float = 1.0, dashes: str = "") -> None:
        """A line through points, with a gap where one is NaN."""
        path, pen = "", "M"
        for x, y in points:
            finite = math.isfinite(y)
            path += f"{pen}{x:.1f} {y:.1f}" if finite else ""
            pen = "L" if finite else "M"
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        shape = f'd="{path}" fill="none" stroke-width="{width:g}"{dashed}'
        self._parts.append(f'<path {shape} style="stroke:var(--{colour})"/>')

    def mark(self, x: float, y: float, place: int, filled: bool = True) -> None:
        """A point of the series at that place."""
        fill, stroke = series(place) if filled else "paper", series(place)
        shape = f'd="{_MARKS[place % len(_MARKS)]}" transform="translate({x:.1f} {y:.1f})" stroke-width="1.5"'
        self._parts.append(f'<path {shape} style="fill:var(--{fill});stroke:var(--{stroke})"/>')

    def bar(self, x: float, y: float, width: float, height: float, place: int) -> None:
        """A bar of the series at that place, hatched from the second series on."""
        fill = f"var(--{series(place)})"
        if place:
            name = f"{self._key}-{place}"
            turned = (
                f'patternUnits="userSpaceOnUse" width="{4 + place}" height="6" patternTransform="rotate({37 * place})"'
            )
            ground = f'<rect width="12" height="6" style="fill:{fill}"/>'
            stripe = '<path d="M0 0V6" stroke-width="1.5" style="stroke:var(--paper)"/>'
            self._patterns[place] = f'<pattern id="{name}" {turned}>{ground}{stripe}</pattern>'
            fill = f"url(#{name})"
        shape = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.1):.1f}" height="{height:g}"'
        self._parts.append(f'<rect {shape} style="fill:{fill}"/>')

    def legend(self, names: Sequence[str], sign: Callable[[float, float, int], None]) -> None:
        """The names below the drawing, which grows, a line each, with the sign of their series."""
        for place, name in enumerate(names):
            y = self.height + _LEGEND_LINE * place + 8
            sign(16, y, place)
            self.text(34, y + 4, shortened(name, _LONGEST_SERIES))
        self.height += _LEGEND_LINE * len(names) + 6 if names else 0

    def svg(self) -> str:
        size = f'viewBox="0 0 {self.width:g} {self.height:g}" aria-hidden="true" focusable="false"'
        patterns = f"<defs>{''.join(self._patterns.values())}</defs>" if self._patterns else ""
        return f"<svg {size}>{patterns}{''.join(self._parts)}</svg>"


def series(place: int) -> str:
    return f"series-{place % _COLOURS}"


def dashes(place: int) -> str:
    return _DASHES[place % len(_DASHES)]


def ticks(most: float, at_most: int = 6) -> list[float]:
    """Round numbers from 0 to `most`."""
    least = most / at_most
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    return [step * place for place in range(int(most / step * 1.000_001) + 1)]


def short(value: float) -> str:
    """As 0, 1.5, 20 k and 1.2 M."""
    for power, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= power:
            return f"{value / power:.4g}{unit}"
    return f"{value:.4g}"


def shortened(name: str, most: int) -> str:
    """A name of at most `most` characters, shortened in the middle, since it ends in the tasks; printable, for XML."""
    name = "".join(each if each.isprintable() else "?" for each in " ".join(name.split()))
    end = most // 3
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[-end:]}"


_LONGEST_NAME = 52
# Characters between a name and the value at the other end of its line.
_APART = 3
_ROW, _TOP, _FOOT, _SIDE = 36.0, 8.0, 36.0, 12.0
_LEAST_TICK_SHARE = 0.08
_ASIDE = 3.0
_MARK_DASHES = "8 3"


@dataclass(frozen=True)
class LineSeries:
    """Points with x, y and the lower and upper end of a bar, by x; `curve` is a line without points."""

    name: str
    points: Sequence[tuple[float, float, float, float]]
    curve: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Point:
    """A row of `points`: the value and its text, and the values of trials, with whether each is final."""

    name: str
    series: str
    text: str
    value: float
    trials: Sequence[tuple[float, bool]] = ()


def points(
    key: str, groups: Sequence[tuple[str, Sequence[Point]]], x_label: str, limit: tuple[float, str] | None = None
) -> str:
    """Rows below the headings of their groups: a mark for each trial, a line for the value, a colour a series, and a
    line from top to bottom at a `limit` with its name."""
    rows: list[Point | str] = []
    for title, each in groups:
        rows += [*([title] if title else []), *each]
    found = [row for row in rows if isinstance(row, Point)]
    names = list(dict.fromkeys(row.series for row in found))
    known = [value for row in found for value in (row.value, *(trial for trial, _ in row.trials))]
    texts = [("", "", row) if isinstance(row, str) else (row.name, row.text, "") for row in rows]
    drawing, x, ys = _rows(key, texts, max([*known, *limit[:1]] if limit else known) * 1.06, x_label)
    for row, y in zip(rows, ys, strict=True):
        if isinstance(row, str):
            continue
        place = names.index(row.series)
        drawing.line([(x(0), y), (WIDTH - _SIDE, y)], "grid")
        drawing.line([(x(row.value), y - 6), (x(row.value), y + 6)], series(place), 2.4)
        for value, final in row.trials:
            drawing.mark(x(value), y, place, final)
    if limit is not None:
        drawing.line([(x(limit[0]), _TOP), (x(limit[0]), drawing.height - _FOOT)], "limit", 1.6, _MARK_DASHES)

    def sign(left: float, y: float, place: int) -> None:
        if place < len(names):
            drawing.mark(left, y, place)
        else:
            drawing.line([(left - 14, y), (left + 12, y)], "limit", 1.6, _MARK_DASHES)

    drawing.legend([*names, *limit[1:]] if limit else names, sign)
    return drawing.svg()


def bars(key: str, rows: Sequence[tuple[str, Mapping[str, float], str]], x_label: str, names: Sequence[str]) -> str:
    """A bar per name: its parts, stacked, and a text at its end. `names` orders the parts, for one style everywhere."""
    most = max(sum(parts.values()) for _, parts, _ in rows)
    drawing, x, ys = _rows(key, [(name, "", "") for name, *_ in rows], most * 1.16, x_label)
    for (_, parts, end), y in zip(rows, ys, strict=True):
        start = 0.0
        for place, name in enumerate(names):
            if parts.get(name):
                drawing.bar(x(start), y - 7, x(start + parts[name]) - x(start), 14, place)
                start += parts[name]
        drawing.text(x(start) + 4, y + 4, end)
    drawing.legend(names, lambda left, y, place: drawing.bar(left - 13, y - 5, 26, 10, place))
    return drawing.svg()


def lines(key: str, shown: Sequence[LineSeries], x_label: str, y_label: str) -> str:
    """Points with bars, and curves; the label of y is the title. Points with the same x are drawn side by side."""
    drawing = Drawing(key, WIDTH, 260)
    most = max(ends[-1] for each in shown for ends in (*each.points, *each.curve)) * 1.05 or 1.0
    places = sorted({at for each in shown for at, *_ in each.points})
    x, y = scale(places[0], places[-1], 52, WIDTH - 20), scale(0, most, 220, 22)
    drawing.text(52, 12, y_label)
    for tick in ticks(most):
        drawing.line([(52, y(tick)), (WIDTH - _SIDE, y(tick))], "grid")
        drawing.text(46, y(tick) + 4, short(tick), "end")
    for tick in far_apart(places):
        drawing.text(x(tick), 236, f"{tick:g}", "middle")
    drawing.text((52 + WIDTH) / 2, 254, x_label, "middle")
    for place, each in enumerate(shown):
        aside = (place - (len(shown) - 1) / 2) * _ASIDE
        drawing.line([(x(at), y(value)) for at, value in each.curve], series(place), 1.8, dashes(place))
        for at, value, low, high in each.points:
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
    """Rows with name and a text at the other end, or a heading, above a scale to `most`; returns scale and rows."""
    foot = _TOP + _ROW * len(rows)
    drawing = Drawing(key, WIDTH, foot + _FOOT)
    x = scale(0, most or 1.0, _SIDE, WIDTH - _SIDE)
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


def scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    each = (end - start) / (high - low or 1.0)
    return lambda value: start + (value - low) * each
