"""Records per write, the most connections at once, and their waits in a pooler."""

from sinkbench.analysis.pooler import waits_in
from sinkbench.analysis.rates import median_known, most
from sinkbench.analysis.samples import connection_peaks
from sinkbench.analysis.words import NOT_MEASURED, milliseconds, tenths
from sinkbench.metrics.metric import Column, Fields, Metric, Seen, column, count, find, number, over, words
from sinkbench.metrics.rate import CELLS
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
        name: None if others else most(getattr(one, name) for one in found) for name in ("clients_peak", "server_peak")
    }
    return {"connections": Connections(**peaks, server_limit=most(each.server_limit for each in found), others=others)}


POOLS = "pools"
_MEANS = ("wait_ms_per_query", "wait_ms_per_transaction")


def _pool_of_trial(seen: Seen) -> Fields:
    # A restarted pooler has reset its counts, and has the settings of its file.
    pool = waits_in(seen.counted)
    return {"pool": pool if pool is None else pool.model_copy(update=dict(seen.pooling))}


def _pool_of_cell(taken: Taken) -> Fields:
    if not (found := [trial.pool for trial in taken.used if trial.pool is not None]):
        return {}
    worst = {name: most(getattr(each, name) for each in found) for name in ("most_waiting", "longest_wait_ms")}
    means = {name: median_known(getattr(each, name) for each in found) for name in _MEANS}
    return {"pool": found[-1].model_copy(update={**worst, **means})}


METRICS = (
    Metric(
        "Records per write",
        of_trial=lambda seen: {"records_per_write": seen.records_per_write},
        of_cell=over(median_known, "records_per_write", of="valid"),
        columns=[Column(CELLS, 60, "records\n/write", lambda cell, _: tenths(cell.records_per_write, 99.95))],
        heads=["records/write"],
        place=140,
        exports=[number("records_per_write")],
    ),
    Metric(
        "Peak connections",
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
    Metric(
        "Waits in the pool",
        of_trial=_pool_of_trial,
        of_cell=_pool_of_cell,
        columns=[
            column(POOLS, 10, "tasks", "tasks", str),
            Column(POOLS, 20, "mode", lambda cell, _: find(cell, "pool.mode") or NOT_MEASURED),
            column(POOLS, 30, "pool\nsize", "pool.size"),
            column(POOLS, 40, "pre-\npared", "pool.prepared_statements"),
            column(POOLS, 50, "server\nconns", "connections.server_peak"),
            column(POOLS, 60, "most\nwaiting", "pool.most_waiting"),
            column(POOLS, 70, "longest\nms", "pool.longest_wait_ms", milliseconds),
            column(POOLS, 80, "ms/\nquery", "pool.wait_ms_per_query", milliseconds),
            column(POOLS, 90, "ms/\ntransaction", "pool.wait_ms_per_transaction", milliseconds),
        ],
        place=160,
        exports=[
            words("pool_mode", "pool.mode"),
            *(count(f"pool_{name}", f"pool.{name}") for name in ("size", "prepared_statements", "most_waiting")),
            *(number(f"pool_{name}", f"pool.{name}") for name in ("longest_wait_ms", *_MEANS)),
        ],
    ),
)
