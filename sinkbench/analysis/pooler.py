"""How long a connector's connections waited in the pooler before its sink, from the samples."""

from collections.abc import Sequence

from sinkbench.analysis.rates import most
from sinkbench.analysis.samples import OTHER_POOL_CLIENTS, Sample, own_count
from sinkbench.analysis.stalls import silences
from sinkbench.results import Pool

POOL_WAITING, POOL_WORST_WAIT = "pool_waiting", "pool_max_wait_seconds"
"""Signs of a pooler: clients waiting for a connection, and the longest current wait."""
POOL_WAIT_SECONDS = "pool_wait_seconds_total"
"""The sign that counts the total wait of all clients."""
POOL_QUERIES, POOL_TRANSACTIONS = "pool_queries_total", "pool_transactions_total"
"""Signs that count what the pooler passed on."""


def waits_in(samples: Sequence[Sample]) -> Pool | None:
    """The waits of a pooler's clients; None without a pooler. Each is None if others use it, or it was silent."""
    if not most(own_count(each.pool_clients, each.signs, OTHER_POOL_CLIENTS) for each in samples):
        return None
    shared = any(each.signs.get(OTHER_POOL_CLIENTS) for each in samples)
    if shared or any(each.service == "pgbouncer" for each in silences(samples)):
        return Pool()
    waiting = most(each.signs.get(POOL_WAITING) for each in samples)
    longest = most(each.signs.get(POOL_WORST_WAIT) for each in samples)
    waited = _counted(samples, POOL_WAIT_SECONDS)
    return Pool(
        most_waiting=None if waiting is None else round(waiting),
        longest_wait_ms=None if longest is None else round(1000 * longest, 3),
        wait_ms_per_query=_each(waited, _counted(samples, POOL_QUERIES)),
        wait_ms_per_transaction=_each(waited, _counted(samples, POOL_TRANSACTIONS)),
    )


def _counted(samples: Sequence[Sample], sign: str) -> float | None:
    """The increase of a count; None if it was read fewer than two times or was reset."""
    counts = [count for each in samples if (count := each.signs.get(sign)) is not None]
    return counts[-1] - counts[0] if len(counts) > 1 and counts == sorted(counts) else None


def _each(seconds: float | None, count: float | None) -> float | None:
    return None if seconds is None or not count else round(1000 * seconds / count, 4)
