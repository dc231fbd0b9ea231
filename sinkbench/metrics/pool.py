"""How long connectors' connections waited in a pooler."""

from __future__ import annotations

from sinkbench.analysis.pooler import waits_in
from sinkbench.analysis.rates import median_known, most
from sinkbench.metrics.format import NOT_MEASURED, milliseconds
from sinkbench.metrics.metric import Column, Fields, Metric, column, count, find, number, words
from sinkbench.metrics.seen import Seen
from sinkbench.metrics.taken import Taken
from sinkbench.metrics.tasks import tasks

POOLS = "pools"


def _of_trial(seen: Seen) -> Fields:
    # A restarted pooler has reset its counts, and has the settings of its file.
    pool = waits_in(seen.counted)
    return {"pool": pool if pool is None else pool.model_copy(update=dict(seen.pooling))}


def _of_cell(taken: Taken) -> Fields:
    found = [trial.pool for trial in taken.used if trial.pool is not None]
    if not found:
        return {}
    waiting = most(each.most_waiting for each in found)
    waits = {
        "most_waiting": None if waiting is None else round(waiting),
        "longest_wait_ms": most(each.longest_wait_ms for each in found),
        "wait_ms_per_query": median_known(each.wait_ms_per_query for each in found),
        "wait_ms_per_transaction": median_known(each.wait_ms_per_transaction for each in found),
    }
    return {"pool": found[-1].model_copy(update=waits)}


METRICS = (
    Metric(
        "Waits in the pool",
        "How long the connector's connections waited for one of the pooler's connections to the database.",
        of_trial=_of_trial,
        of_cell=_of_cell,
        columns=[
            Column(POOLS, 10, "tasks", tasks),
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
            count("pool_size", "pool.size"),
            count("pool_prepared_statements", "pool.prepared_statements"),
            count("pool_most_waiting", "pool.most_waiting"),
            number("pool_longest_wait_ms", "pool.longest_wait_ms"),
            number("pool_wait_ms_per_query", "pool.wait_ms_per_query"),
            number("pool_wait_ms_per_transaction", "pool.wait_ms_per_transaction"),
        ],
    ),
)
