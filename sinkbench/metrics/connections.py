"""Records per write, and the most connections that were open at once."""

from __future__ import annotations

from sinkbench.analysis.rates import median_known, most
from sinkbench.analysis.samples import connection_peaks
from sinkbench.metrics.format import NOT_MEASURED, tenths
from sinkbench.metrics.metric import Column, Fields, Metric, count, number, over
from sinkbench.metrics.rate import CELLS
from sinkbench.metrics.seen import Seen
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, Connections

LOADS = "loads"


def connections(cell: CellSummary) -> str:
    """As `clients/server`, or the only number; `not known: 2 others` if other users' connections hide it."""
    if others := cell.connections.others:
        return f"not known:\n{others} {'other' if others == 1 else 'others'}"
    return "/".join(map(str, connection_counts(cell.connections))) or NOT_MEASURED


def connection_counts(found: Connections) -> list[int]:
    """The most connections of clients and of the server if they differ, as with a pooler; else one number, or none."""
    known = (count for count in (found.clients_peak, found.server_peak) if count is not None)
    return list(dict.fromkeys(known))


def _of_trial(seen: Seen) -> Fields:
    """The most of the trial's own connections, unless others' hide it."""
    clients, servers = (None, None) if seen.other_connections else connection_peaks(seen.samples)
    limit, others = seen.connection_limit, seen.other_connections
    return {"connections": Connections(clients_peak=clients, server_peak=servers, server_limit=limit, others=others)}


def _of_cell(taken: Taken) -> Fields:
    """The maximum over all trials; unknown if other users' connections hide it in one of them."""
    found = [trial.connections for trial in taken.trials]
    others = max((each.others for each in found), default=0)
    peaks = {
        name: None if others else most(getattr(each, name) for each in found)
        for name in ("clients_peak", "server_peak")
    }
    return {"connections": Connections(**peaks, server_limit=most(each.server_limit for each in found), others=others)}


METRICS = (
    Metric(
        "Records per write",
        "Stored records divided by the writes that the sink has counted.",
        of_trial=lambda seen: {"records_per_write": seen.records_per_write},
        of_cell=over(median_known, "records_per_write", of="valid"),
        columns=[
            Column(
                CELLS,
                60,
                "records\n/write",
                lambda cell, _: tenths(cell.records_per_write, 99.95),
            )
        ],
        heads=["records/write"],
        place=140,
        exports=[number("records_per_write")],
    ),
    Metric(
        "Peak connections",
        "The most connections that were seen open at once.",
        of_trial=_of_trial,
        of_cell=_of_cell,
        columns=[Column(table, 70, "peak\nconns", lambda cell, _: connections(cell)) for table in (CELLS, LOADS)],
        place=150,
        exports=[
            count("clients_peak", "connections.clients_peak"),
            count("server_peak", "connections.server_peak"),
            count("other_connections", "connections.others"),
        ],
    ),
)
