"""The style of tables, and how they become text or Markdown."""

import io
import re
from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from sinkbench.metrics.metric import one_line

_ANY_WIDTH = 1_000
# Two pipelines must remain distinguishable.
_LEAST_NAME = 28
# Spaces between two columns: the padding, and one for the line of the box.
_BETWEEN = 2


def new_table(first: str | Text, *others: str | Column, rows: Iterable[Sequence[str]] = ()) -> Table:
    """A table: its column `first` has names; of the others a plain header has numbers."""
    columns = (Column(each, justify="right", no_wrap=True) if isinstance(each, str) else each for each in others)
    table = Table(words(""), *columns, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.columns[0].header = first
    for row in rows:
        table.add_row(*map(Text, row))
    return table


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


def width_of(table: Table) -> int:
    """The columns that a table takes if nothing in it is truncated."""
    return sum(_needed(each) + _BETWEEN for each in table.columns) - _BETWEEN


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


def markdown(blocks: Iterable[Iterable[str | Table]]) -> str:
    """Blocks of lines, which become a list, and tables."""
    texts = [
        [line for part in block for line in ([f"- {escaped(part)}"] if isinstance(part, str) else _markdown(part))]
        for block in blocks
    ]
    return "\n\n".join("\n".join(lines) for lines in texts if lines) + "\n"


def escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~#])", r"\\\1", " ".join(text.split()))


def _markdown(table: Table) -> list[str]:
    heads = [one_line(str(column.header)) for column in table.columns]
    rule = "|".join(" ---: " if column.justify == "right" else " --- " for column in table.columns)
    rows = zip(*([str(cell).replace("\n", ", ") for cell in column.cells] for column in table.columns), strict=True)
    first, *texts = (f"| {' | '.join(map(escaped, row))} |" for row in (heads, *rows))
    return [first, f"|{rule}|", *texts]
