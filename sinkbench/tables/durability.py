"""What is on how many nodes when a record counts as stored: as a table, and beside a comparison of cells."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sinkbench.results import CellSummary, RunSummary
from sinkbench.summary.durability import alike, is_worth_telling
from sinkbench.tables.format import NOT_MEASURED
from sinkbench.tables.text import new_table, words

__all__ = ["durability_in_words", "durability_table", "unlike_durability"]


def durability_in_words(cell: CellSummary) -> str:
    """As `2 nodes, disk`; `not known` of a sink that does not tell."""
    return (cell.durability.text if cell.durability is not None else "") or "not known"


def durability_table(summary: RunSummary, names: Sequence[str], *, always: bool = False) -> Table | None:
    """A row for each cell by its name; None if nobody looked, or if all cells are as usual: on the disk of one node.

    `always`: also where all cells are as usual.
    """
    cells = summary.cells
    if not any(cell.durability for cell in cells) or not (always or is_worth_telling(cells)):
        return None
    table = new_table("durability", "tasks", words("stored on"), words("in Kafka"))
    for cell, name in zip(cells, names, strict=True):
        kafka = (cell.durability.kafka if cell.durability is not None else "") or NOT_MEASURED
        table.add_row(*map(Text, (name, f"{cell.tasks}", durability_in_words(cell), kafka)))
    return table


def unlike_durability(cells: Sequence[CellSummary], names: Sequence[str]) -> str:
    """A sentence that cells which are compared are not equally durable, or that nobody knows; empty where they are."""
    equal = alike(cells)
    if equal is True:
        return ""
    if equal is None:
        unknown = [name for cell, name in zip(cells, names, strict=True) if durability_in_words(cell) == "not known"]
        return f" How durably {' and '.join(unknown)} stores is not known."
    of_kafka = len({cell.durability.kafka for cell in cells if cell.durability is not None}) > 1
    told = [
        f"{name} on {durability_in_words(cell)}"
        + (f" ({cell.durability.kafka})" if of_kafka and cell.durability is not None else "")
        for cell, name in zip(cells, names, strict=True)
    ]
    return f" They do not store as durably: {'; '.join(told)}."
