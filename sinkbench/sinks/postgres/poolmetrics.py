"""PgBouncer's pools by the metrics of CloudNativePG's Pooler, which opens PgBouncer's console to nobody."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from sinkbench.services.access import Access
from sinkbench.services.failures import maps_exceptions
from sinkbench.services.http import http_client
from sinkbench.stack import Endpoint

METRICS = "metrics"
"""The option of an endpoint with the addresses of the pods' metrics; its other options are PgBouncer's settings."""
ANSWER_SECONDS = 5.0
# PgBouncer's own, since 1.24.
DEFAULTS = {"pool_mode": "session", "default_pool_size": "20", "max_client_conn": "100"}
DEFAULTS |= {"max_prepared_statements": "200"}
OF_EACH = ("default_pool_size", "max_client_conn")
"""What each pod has of its own."""
CLIENTS = ("cl_active", "cl_waiting")
SERVERS = ("sv_active", "sv_idle", "sv_used", "sv_tested", "sv_login")
Row = dict[str, Any]


@maps_exceptions(httpx.HTTPError, ValueError)
class PoolMetrics:
    """Answers the questions of PgBouncer's console, for all pods together; rows of clients and servers are numbers."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._urls, self._settings = endpoint.options[METRICS].split(), {**DEFAULTS, **endpoint.options}
        for each in OF_EACH:
            self._settings[each] = str(int(self._settings[each]) * len(self._urls))
        self._http = http_client(Access(), ANSWER_SECONDS)
        self.close = self._http.close

    def execute(self, query: bytes) -> Iterable[Row]:
        """Raises ServiceError if a pod does not answer, or has no metrics of PgBouncer."""
        what = query.decode().removeprefix("SHOW ")
        if what == "CONFIG":
            return [{"key": key, "value": value} for key, value in self._settings.items()]
        if what in ("CLIENTS", "SERVERS"):
            counts = Counter[str]()
            for row in self.execute(b"SHOW POOLS"):
                counts[row["database"]] += sum(int(row[each]) for each in (CLIENTS if what == "CLIENTS" else SERVERS))
            unknown = {"connect_time": "", "local_port": 0}
            return [{"database": name, "ptr": number, **unknown} for name in counts for number in range(counts[name])]
        return [row for url in self._urls for row in self._rows(url, f"cnpg_pgbouncer_{what.lower()}_")]

    def _rows(self, url: str, prefix: str) -> Iterable[Row]:
        text, rows = self._http.get(url).raise_for_status().text, dict[str, Row]()
        if "\ncnpg_pgbouncer_last_collection_error 0\n" not in text:
            raise ValueError(f"{url} has no metrics of PgBouncer; see the log of the Pooler's pod")
        wanted = "\n".join(line for line in text.splitlines() if line.startswith(prefix)) + "\n"
        for each in (sample for family in text_string_to_metric_families(wanted) for sample in family.samples):
            rows.setdefault(str(each.labels), {**each.labels})[each.name.removeprefix(prefix)] = each.value
        return rows.values()
