"""Tables as Markdown, for pull requests and issues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> list[str]:
    """The lines of a table; columns in `numbers` are aligned right."""
    right = set(numbers)
    rule = ["---:" if place in right else "---" for place in range(len(headers))]
    return [_row(headers), f"| {' | '.join(rule)} |", *map(_row, rows)]


def escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~#])", r"\\\1", " ".join(text.split()))


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(escaped, texts))} |"
