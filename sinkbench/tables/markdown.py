"""Tables as Markdown, for pull requests and issues."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence


def markdown_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = (), codes: Iterable[int] = ()
) -> list[str]:
    """The lines of a table; columns in `numbers` are aligned right, those in `codes` are code."""
    right, code = set(numbers), set(codes)
    rule = ["---:" if place in right else "---" for place in range(len(headers))]
    return [_row(headers), f"| {' | '.join(rule)} |", *(_row(row, code) for row in rows)]


def escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~#])", r"\\\1", " ".join(text.split()))


def _row(texts: Sequence[str], code: Collection[int] = ()) -> str:
    cells = (_code(text) if place in code else escaped(text) for place, text in enumerate(texts))
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    # A bar ends a cell even within code. No text here has a backtick.
    return f"`{text}`".replace("|", "\\|") if text else ""
