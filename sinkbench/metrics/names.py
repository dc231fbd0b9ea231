"""Names of cells in tables: the label, and what distinguishes cells with the same label."""

import textwrap
from collections import Counter

from sinkbench.analysis.words import counted, percent, significant, whole
from sinkbench.errors import ReasonCode
from sinkbench.results import CellSummary, RunSummary

SHORT_NAMES = {"elasticsearch": "es", "postgres": "pg", "pgbouncer": "pgb"}
"""Short names of services for columns with several of them."""
_PRODUCTS = {"elasticsearch": "Elasticsearch", "postgres": "PostgreSQL", "pgbouncer": "PgBouncer"}
UNREADY = {
    ReasonCode.NOT_WARM: "warming",
    ReasonCode.RISING: "warming",
    ReasonCode.NOT_STEADY: "unsteady",
    ReasonCode.SHARED: "shared",
    ReasonCode.CONTENT_NOT_CHECKED: "not checked",
}
# Other codes are their own words.
_WORDS = {ReasonCode.TASKS_FAILED: "FAILED", ReasonCode.FOREIGN_RECORDS: "FOREIGN", ReasonCode.INVALID: "invalid"}


def word_of(fault: ReasonCode) -> str:
    """As NOT AUDITED."""
    return _WORDS.get(fault, fault.replace("_", " ").upper())


def product_name(sink: str) -> str:
    """A sink as its makers write it."""
    return _PRODUCTS.get(sink, sink)


def cell_name(cell: CellSummary, summary: RunSummary) -> str:
    """A cell's label, with its tasks and load if other cells share the label."""
    if Counter(each.label for each in summary.cells)[cell.label] == 1:
        return cell.label
    if cell.fault is not None:
        return f"{cell.label}, {cell.fault}"
    if cell.rescale is not None:
        return f"{cell.label} from {cell.rescale.tasks_before} to {cell.tasks} tasks"
    load = f" at {whole(cell.offered_records_per_second)} records/s" if cell.mode == "sustain" else ""
    load += f" ({percent(cell.of_capacity)} of its capacity)" if cell.of_capacity is not None else ""
    load += f" beside {counted(cell.readers, 'further group')}" if cell.readers else ""
    load += f" and {significant(cell.reads_per_second)} queries/s" if cell.reads_per_second is not None else ""
    return f"{cell.label} with {cell.tasks} tasks{load}"


def marked_name(cell: CellSummary, summary: RunSummary) -> str:
    """A cell's name, and in brackets why its figures may not be compared."""
    if cell.passed and cell.at_least is None:
        return cell_name(cell, summary)
    return f"{cell_name(cell, summary)} ({', '.join(_short(cell))})"


def in_short(cell: CellSummary) -> str:
    """The verdict, shortened for a column; a star means notes."""
    return "\n".join(_short(cell)) + (" *" if cell.notes else "")


def folded(name: str, longest: int) -> str:
    """A name on as many lines as it needs, since rich would truncate it in a narrow table."""
    return "\n".join(textwrap.wrap(name, longest, break_on_hyphens=False)) or name


def _short(cell: CellSummary) -> list[str]:
    return [word_of(fault.code) for fault in cell.faults] or [
        "ok" if cell.at_least is None else UNREADY[cell.at_least.code]
    ]
