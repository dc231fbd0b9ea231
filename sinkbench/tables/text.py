"""The style of tables, and how they become text or Markdown."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

_ANY_WIDTH = 1_000
# Two pipelines must remain distinguishable.
_LEAST_NAME = 28
# Spaces between two columns: the padding, and one for the line of the box.
_BETWEEN = 2


def new_table(first: str, *others: str | Column) -> Table:
    """An empty table: its column `first` has names; of the others a plain header has numbers."""
    columns = (Column(each, justify="right", no_wrap=True) if isinstance(each, str) else each for each in others)
    return Table(words(first), *columns, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)


def words(header: str) -> Column:
    """A column of words that do not wrap."""
    return Column(header, no_wrap=True)


def plain_text(parts: Iterable[str | Table], width: int = _ANY_WIDTH) -> str:
    """Lines of any length, and tables, without colours and trailing spaces. In a table that is too wide names are
    truncated; if that is not enough it exceeds `width`, since a truncated number or verdict could be misread."""
    console = Console(width=width, color_system=None, force_terminal=False, file=io.StringIO())
    with console.capture() as captured:
        for part in parts:
            if isinstance(part, Table):
                console.width = _fitted(part, width)
                console.print(part)
            else:
                console.print(Text(part), soft_wrap=True)
    return "\n".join(line.rstrip() for line in captured.get().split("\n"))


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _fitted(table: Table, width: int) -> int:
    """Gives names the width that the other columns leave, and returns the table's maximum width."""
    names, *others = table.columns
    taken = sum(_needed(each) + _BETWEEN for each in others)
    if names.overflow != "fold":
        names.max_width = max(width - taken, min(_needed(names), _LEAST_NAME))
    return max(width, taken + (names.max_width or names.min_width or 0))


def _needed(column: Column) -> int:
    """The width of a column that is neither truncated nor wrapped more than it can be."""
    if column.overflow == "fold":
        return column.min_width or 1
    return max(cell_len(line) for each in (column.header, *column.cells) for line in str(each).split("\n"))


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> list[str]:
    """The lines of a table; columns in `numbers` are aligned right."""
    right = set(numbers)
    rule = ["---:" if place in right else "---" for place in range(len(headers))]
    return [_markdown_row(headers), f"| {' | '.join(rule)} |", *map(_markdown_row, rows)]


def escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~#])", r"\\\1", " ".join(text.split()))


def _markdown_row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(escaped, texts))} |"
