"""PgBouncer's pools as the exporter of CloudNativePG 1.30 writes them, of two pods."""

import re
from typing import Any

import httpx
import pytest

from sinkbench.errors import ServiceError
from sinkbench.sinks.postgres import poolmetrics
from sinkbench.sinks.postgres.clients import PgBouncer
from sinkbench.sinks.values import SinkPooling
from sinkbench.stack import Endpoint

POOL = {"cl_active": 3, "cl_waiting": 2, "sv_active": 3, "sv_idle": 1, "sv_used": 0, "sv_tested": 0, "sv_login": 0}
POOL |= {"maxwait": 1, "maxwait_us": 250000, "pool_mode": 2}
STATS = {"total_wait_time": 5e5, "total_query_count": 40, "total_xact_count": 20}
ENDPOINT = Endpoint("", options={"metrics": "http://a/metrics http://b/metrics", "default_pool_size": "10"})


def exported(error: int = 0) -> str:
    lines = [f"cnpg_pgbouncer_last_collection_error {error}"]
    for database in ("app", "pgbouncer"):
        labels = f'{{database="{database}",user="app"}}'
        lines += [f"cnpg_pgbouncer_pools_{name}{labels} {value}" for name, value in POOL.items()]
        lines += [f'cnpg_pgbouncer_stats_{name}{{database="{database}"}} {value}' for name, value in STATS.items()]
    return "\n".join(f"# TYPE {re.split('[{ ]', line)[0]} gauge\n{line}" for line in lines) + "\n"


def pooler_of(text: str, monkeypatch: pytest.MonkeyPatch) -> PgBouncer:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text=text))
    monkeypatch.setattr(poolmetrics, "http_client", lambda *given: httpx.Client(transport=transport))
    return PgBouncer(poolmetrics.PoolMetrics(ENDPOINT), "app")


def test_connections_and_waits_of_all_pods_are_those_of_the_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    pooler = pooler_of(exported(), monkeypatch)
    found: Any = pooler.connections()
    assert (found.clients, found.servers, found.signs["pool_waiting"]) == (10, 8, 4)
    assert (found.signs["pool_max_wait_seconds"], found.signs["pool_wait_seconds_total"]) == (1.25, 1.0)
    assert (found.signs["pool_queries_total"], found.signs["pool_transactions_total"]) == (80, 40)
    assert len(pooler.rows("SERVERS")) == 8
    pooler.others = set(sorted(pooler.clients())[:3])
    assert pooler.connections().signs["other_pool_clients"] == 3
    assert pooler.read() == SinkPooling("session", 20, 200)


def test_an_exporter_that_reaches_no_pgbouncer_is_not_one_without_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServiceError, match="http://a/metrics has no metrics of PgBouncer"):
        pooler_of(exported(error=1), monkeypatch).connections()
