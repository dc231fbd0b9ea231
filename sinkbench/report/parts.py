"""The parts of a report before they are HTML: sections with texts, tables, figures and files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table as RichTable
from rich.text import Text

from sinkbench.metrics import COLUMNS


@dataclass(frozen=True)
class Lines:
    """Sentences, a line each."""

    lines: Sequence[str]
    bullets: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of texts below their headers; `numbers` are columns aligned right, `sentences` those that need width."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    numbers: Collection[int] = ()
    sentences: Collection[int] = ()
    meanings: Mapping[str, str] = field(default_factory=lambda: COLUMNS)
    """What is said of a column, by its header: a heading of docs/methods.md."""
    links: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """Where a cell leads to on the page, by its row and column: the `key` of a figure."""


@dataclass(frozen=True)
class Chart:
    """A picture: `svg` is an element in colours that are variables of the page, `label` its text for who sees none."""

    label: str
    svg: str
    heading: str = ""


@dataclass(frozen=True)
class Figure:
    """Pictures of one kind, `small` ones several in a row, and their numbers as a table."""

    caption: str
    charts: Sequence[Chart]
    table: Table
    meaning: str
    """The heading of docs/methods.md that says what is shown."""
    small: bool = False
    key: str = ""
    """Names it in links; empty if none leads to it."""


@dataclass(frozen=True)
class File:
    """A file of the run as it is."""

    name: str
    text: str


@dataclass(frozen=True)
class Meanings:
    """What figures mean: headings of docs/methods.md, each with its sentence."""

    figures: Mapping[str, str]


Part = Lines | Table | Figure | File | Meanings


@dataclass(frozen=True)
class PageSection:
    """A part of the page with a heading; `key` names it in links."""

    key: str
    title: str
    parts: Sequence[Part] = field(default=())


@dataclass(frozen=True)
class Opening:
    """The first screen of a page.

    Attributes:
        lead: the answers, a sentence each, the most important one first.
        grounds: what they rest on, in lines.
        outcome: whether every check passed, in a few words; empty if nothing was checked.
        aside: sections of words that stand with the answer, such as what is missing.
        pictures: sections of figures that stand at its side in a wide window.
    """

    lead: Sequence[str]
    grounds: Sequence[str] = ()
    outcome: str = ""
    aside: Sequence[PageSection] = ()
    pictures: Sequence[PageSection] = ()

    @property
    def sections(self) -> list[PageSection]:
        """Those that have parts, in their order on the page."""
        return [section for section in (*self.aside, *self.pictures) if section.parts]


def of_rich(table: RichTable, caption: str) -> Table:
    """A table made for the terminal as one for the page."""
    columns = table.columns
    cells = [[_plain(cell) for cell in column.cells] for column in columns]
    # A terminal shows a name once for several rows; a screen reader reads each row by itself.
    for row in range(1, table.row_count):
        cells[0][row] = cells[0][row] or cells[0][row - 1]
    return Table(
        headers=[_in_one_line(_plain(column.header)) for column in columns],
        rows=list(zip(*cells, strict=True)),
        caption=caption,
        numbers=[place for place, column in enumerate(columns) if column.justify == "right"],
        sentences=[place for place, column in enumerate(columns) if column.overflow == "fold"],
    )


def _in_one_line(header: str) -> str:
    return " ".join(header.replace("-\n", "").replace("/\n", "/").replace("\n/", "/").split())


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)
