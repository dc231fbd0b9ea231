"""What the tables of a run share: some columns, and a run's machine."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from sinkbench.errors import ReasonCode
from sinkbench.results import CellSummary, Connections, RunSummary
from sinkbench.tables.format import NOT_MEASURED

__all__ = [
    "SHORT_NAMES",
    "UNREADY",
    "connection_counts",
    "connections",
    "counted",
    "in_short",
    "machine_in_words",
    "resumed_in_words",
]

SHORT_NAMES = {"elasticsearch": "es", "postgres": "pg", "pgbouncer": "pgb"}
"""What services are called where a column has several of them."""

_SHORT = {
    ReasonCode.TASKS_FAILED: "FAILED",
    ReasonCode.LOST: "LOST",
    ReasonCode.DEAD_LETTERS: "DEAD LETTERS",
    ReasonCode.DUPLICATED: "DUPLICATED",
    ReasonCode.STALE: "STALE",
    ReasonCode.MISSING: "MISSING",
    ReasonCode.NOT_DELETED: "NOT DELETED",
    ReasonCode.FOREIGN_RECORDS: "FOREIGN",
    ReasonCode.ALTERED: "ALTERED",
    ReasonCode.NOT_AUDITED: "NOT AUDITED",
    ReasonCode.NOT_RECOVERED: "NOT RECOVERED",
    ReasonCode.NOT_SUSTAINED: "NOT SUSTAINED",
    ReasonCode.UNCLEAR: "UNCLEAR",
    ReasonCode.INVALID: "invalid",
}
UNREADY = {
    ReasonCode.NOT_WARM: "warming",
    ReasonCode.RISING: "warming",
    ReasonCode.NOT_STEADY: "unsteady",
    ReasonCode.SHARED: "shared",
    ReasonCode.CONTENT_NOT_CHECKED: "not checked",
}
"""What a cell is whose rate may not be quoted, in a word."""


def counted(cell: CellSummary) -> tuple[str, str]:
    """Records lost, and records duplicated; with the trials of which that is not known, as `0 (1 of 3 not audited)`."""
    if cell.audit is None:
        return NOT_MEASURED, NOT_MEASURED
    # One word a line: the columns are narrow.
    rest = f"\n({cell.not_audited} of {cell.trials}\nnot\naudited)" if cell.not_audited else ""
    return f"{cell.audit.lost:,}{rest}", f"{cell.audit.duplicates:,}{rest}"


def connections(cell: CellSummary) -> str:
    """As `clients/server`, or the one number that there is; `not known: 2 others` where others hid it."""
    if others := cell.connections.others:
        return f"not known:\n{others} {'other' if others == 1 else 'others'}"
    return "/".join(map(str, connection_counts(cell.connections))) or NOT_MEASURED


def connection_counts(found: Connections) -> list[int]:
    """The most connections of clients and of the server if they differ, as behind a pool; else one number, or none."""
    known = (count for count in (found.clients_peak, found.server_peak) if count is not None)
    return list(dict.fromkeys(known))


def in_short(cell: CellSummary) -> str:
    """The verdict in as few words as a column has room for, one a line; a star for notes.

    `remarks` gives both in full, and the counts of records have columns of their own.
    """
    unready = "ok" if cell.at_least is None else UNREADY[cell.at_least.code]
    words = "\n".join(_SHORT.get(fault.code, "NOT OK") for fault in cell.faults) or unready
    return words + (" *" if cell.notes else "")


def machine_in_words(environment: Mapping[str, JsonValue]) -> str:
    """As `Intel Xeon, 2 cores`, as far as it is known."""
    model, cores = environment.get("cpu_model"), environment.get("cpu_count")
    return ", ".join([*([str(model)] if model else []), *([f"{cores} cores"] if cores else [])])


def resumed_in_words(summary: RunSummary) -> str:
    """As `resumed 2026-11-21T03:48:00Z`; empty if the run was not interrupted."""
    return f"resumed {' and '.join(summary.resumed)}" if summary.resumed else ""
