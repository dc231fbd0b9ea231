"""The look of tables, and how they become text."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

__all__ = ["new_table", "plain_text", "printed", "words"]

_ANY_WIDTH = 1_000


def new_table(first: str, *others: str | Column) -> Table:
    """An empty table: its column `first` has names; of the others one that is a header alone has numbers."""
    columns = (Column(each, justify="right", no_wrap=True) if isinstance(each, str) else each for each in others)
    return Table(words(first), *columns, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)


def words(header: str) -> Column:
    """A column of words, which stay on their line."""
    return Column(header, no_wrap=True)


def printed(parts: Iterable[str | Table], console: Console) -> str:
    """Lines of any length, and tables as wide as the console at most, as it prints them."""
    with console.capture() as captured:
        for part in parts:
            if isinstance(part, Table):
                console.print(part)
            else:
                console.print(Text(part), soft_wrap=True)
    return captured.get()


def plain_text(parts: Iterable[str | Table], width: int = _ANY_WIDTH) -> str:
    """The same for a pipe, without colours and without spaces at the ends of lines."""
    console = Console(width=width, color_system=None, force_terminal=False, file=io.StringIO())
    return "\n".join(line.rstrip() for line in printed(parts, console).split("\n"))
