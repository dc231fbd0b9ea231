"""What a report is made of, before it is HTML: sections with texts, tables, figures and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.table import Table as RichTable
from rich.text import Text

__all__ = ["Chart", "Figure", "File", "Lines", "Part", "Section", "Table", "of_rich"]


@dataclass(frozen=True)
class Lines:
    """Sentences, each a line of its own."""

    lines: Sequence[str]
    bullets: bool = False


@dataclass(frozen=True)
class Table:
    """Texts in rows below their headers."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    numbers: frozenset[int] = frozenset()
    """The places of the columns that are set to the right."""
    sentences: frozenset[int] = frozenset()
    """The places of those that hold so much text that they need some width."""


@dataclass(frozen=True)
class Chart:
    """One picture."""

    label: str
    """What it shows, for who does not see it."""
    svg: str
    """An <svg> element whose colours are variables of the page's style."""
    heading: str = ""
    """What stands above it where a figure has several."""


@dataclass(frozen=True)
class Figure:
    """Pictures of the same kind, and all their numbers as a table."""

    caption: str
    charts: Sequence[Chart]
    table: Table
    small: bool = False
    """Whether its pictures are so small that several fit beside each other, below the caption."""


@dataclass(frozen=True)
class File:
    """A file of the run as it is."""

    name: str
    text: str


Part = Lines | Table | Figure | File


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading; without parts it is left out."""

    key: str
    """Names it in links."""
    title: str
    parts: Sequence[Part] = field(default=())


def of_rich(table: RichTable, caption: str) -> Table:
    """A table made for the terminal, whose cells are texts, as one for the page."""
    columns = table.columns
    cells = [[_plain(cell) for cell in column.cells] for column in columns]
    # A terminal shows a name once for all rows that have it. Here each row is read out by itself.
    for row in range(1, table.row_count):
        cells[0][row] = cells[0][row] or cells[0][row - 1]
    return Table(
        headers=[_in_one_line(_plain(column.header)) for column in columns],
        rows=list(zip(*cells, strict=True)),
        caption=caption,
        numbers=frozenset(place for place, column in enumerate(columns) if column.justify == "right"),
        sentences=frozenset(place for place, column in enumerate(columns) if column.overflow == "fold"),
    )


def _in_one_line(header: str) -> str:
    """A header without the breaks that save a terminal's columns."""
    return " ".join(header.replace("-\n", "").replace("/\n", "/").replace("\n/", "/").split())


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)
