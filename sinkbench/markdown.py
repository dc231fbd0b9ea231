"""Tables as Markdown, to paste into a pull request or an issue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["escaped", "markdown_table"]


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> list[str]:
    """The lines of a table; the columns at the places `numbers` are set to the right."""
    right = set(numbers)
    rule = ["---:" if place in right else "---" for place in range(len(headers))]
    return [_row(headers), f"| {' | '.join(rule)} |", *map(_row, rows)]


def escaped(text: str) -> str:
    """A text on one line in which nothing is read as Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]<>|~#])", r"\\\1", " ".join(text.split()))


def _row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(map(escaped, texts))} |"
