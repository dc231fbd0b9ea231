"""The parts of a report before they are HTML: sections with texts, tables, figures and files."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table as RichTable

from sinkbench.metrics import COLUMNS
from sinkbench.metrics.metric import one_line


@dataclass(frozen=True)
class Lines:
    lines: Sequence[str]
    bullets: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of texts below headers; `numbers` are columns aligned right, `sentences` wide columns."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    numbers: Collection[int] = ()
    sentences: Collection[int] = ()
    meanings: Mapping[str, str] = field(default_factory=lambda: COLUMNS)
    """The heading in docs/methods.md that explains a column, by the column's header."""
    links: Mapping[str, str] = field(default_factory=dict)  # addresses by the text of the first column


@dataclass(frozen=True)
class Chart:
    """A picture: `svg` is an element with colours from the page's variables, `label` its alternative text."""

    label: str
    svg: str
    heading: str = ""


@dataclass(frozen=True)
class Figure:
    """Pictures of one kind, several in a row if `small`."""

    caption: str
    charts: Sequence[Chart]
    meaning: str
    """The heading of docs/methods.md that explains the figure."""
    small: bool = False


@dataclass(frozen=True)
class File:
    name: str
    text: str


@dataclass(frozen=True)
class Meanings:
    figures: Mapping[str, str]


Part = Lines | Table | Figure | File | Meanings


@dataclass(frozen=True)
class PageSection:
    """A part of the page with a heading; `key` is its name in links."""

    key: str
    title: str
    parts: Sequence[Part] = field(default=())


@dataclass(frozen=True)
class Opening:
    """The first screen of a page: a question, its answers, the most important first, figures and asides."""

    question: str
    lead: Sequence[str]
    figures: Sequence[PageSection] = ()
    asides: Sequence[PageSection] = ()


def of_rich(table: RichTable, caption: str) -> Table:
    columns = table.columns
    cells = [list(map(str, column.cells)) for column in columns]
    # A terminal shows a name once for several rows; a screen reader needs it in each row.
    for row in range(1, table.row_count):
        cells[0][row] = cells[0][row] or cells[0][row - 1]
    return Table(
        headers=[one_line(str(column.header)) for column in columns],
        rows=list(zip(*cells, strict=True)),
        caption=caption,
        numbers=[place for place, column in enumerate(columns) if column.justify == "right"],
        sentences=[place for place, column in enumerate(columns) if column.overflow == "fold"],
    )
