"""SVG elements as wide as a phone, in the page's font, with colours that are variables of its style, as for dark mode.
Series differ in more than colour."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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
    """A name of at most `most` characters, shortened in the middle, since it ends in the tasks; printable, as XML
    requires."""
    name = "".join(each if each.isprintable() else "?" for each in " ".join(name.split()))
    end = most // 3
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[-end:]}"
