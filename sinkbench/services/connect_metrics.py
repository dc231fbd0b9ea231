"""The workers' metrics of each task, from the Prometheus JMX exporter with `connect/metrics.yaml`."""

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

import httpx
from prometheus_client.parser import text_string_to_metric_families

from sinkbench.services.access import Access
from sinkbench.services.failures import maps_exceptions
from sinkbench.services.http import http_client

# A worker that does not answer must not delay the probes repeatedly.
SCRAPE_SECONDS, ANSWER_SECONDS, PAUSE_SECONDS = 2.0, 2.0, 10.0
# A few workers answer within the round that asks, and their counts are of the same moment as the sink's.
ROUND_SECONDS, MOST_AT_ONCE = 0.1, 8
# Of one core.
MOST_SHARE = 0.03
# The time until the last put returns and is counted.
SETTLE_SECONDS = 3.0
SINK, TASK, CONSUMER, FETCH = (
    f"kafka_{name}_metrics_"
    for name in ("connect_sink_task", "connect_connector_task", "consumer_consumer", "consumer_consumer_fetch_manager")
)
PREFIXES = (SINK, TASK, FETCH, CONSUMER)
CLIENT = re.compile(r"connector-consumer-(.+)-(\d+)")
# Signs of a process, and their sources.
PROCESS = {
    "connect_heap_bytes": "jvm_memory_used_bytes",
    "connect_gc_seconds_total": "jvm_gc_collection_seconds_sum",
    "connect_cpu_seconds_total": "process_cpu_seconds",
    "connect_compilation_seconds_total": "jvm_compilation_time_seconds",
}
WANTED = (*PREFIXES, *PROCESS.values())


class Sign(NamedTuple):
    """A figure over all tasks, or over the busy ones, which have had records."""

    prefix: str
    source: str
    how: Callable[[list[float]], float]
    busy: bool = False


SIGNS = {
    "tasks_read_total": Sign(SINK, "sink_record_read", sum),
    "tasks_active_records": Sign(SINK, "sink_record_active_count", sum),
    "tasks_fetched_bytes_total": Sign(CONSUMER, "incoming_byte", sum),
    "tasks_running_share": Sign(TASK, "running_ratio", fmean),
    "tasks_poll_share": Sign(CONSUMER, "poll_idle_ratio_avg", fmean, busy=True),
    "tasks_put_ms": Sign(SINK, "put_batch_avg_time_ms", fmean, busy=True),
    "tasks_put_max_ms": Sign(SINK, "put_batch_max_time_ms", max, busy=True),
    "tasks_records_per_put": Sign(TASK, "batch_size_avg", fmean, busy=True),
    "tasks_fetch_ms": Sign(FETCH, "fetch_latency_avg", fmean, busy=True),
    "tasks_commit_ms": Sign(TASK, "offset_commit_avg_time_ms", fmean, busy=True),
    "tasks_lag_max_records": Sign(FETCH, "records_lag_max", max, busy=True),
}
OTHERS = [SINK + "sink_record_send", SINK + "partition_count", CONSUMER + "time_between_poll_avg"]
# Exporters based on Prometheus' own libraries return only these; the other metrics of the JVM, such as its search for
# deadlocks, would more than double the cost. Older ones add "_total" to names of counts.
ASKED = [
    name + ending
    for name in (*(each.prefix + each.source for each in SIGNS.values()), *OTHERS, *PROCESS.values())
    for ending in ("", "_total")
]

Task = Mapping[str, float]
"""A task's metrics by JMX's names, with "_" for "-" and without "-total"; absent without a value."""


@dataclass(frozen=True)
class WorkerMetrics:
    """The metrics of a worker's tasks by connector and number, and of its process by the names in `PROCESS`: CPU,
    compilation and garbage collection seconds so far, and bytes of heap in use; absent if not exported."""

    tasks: Mapping[tuple[str, int], Task] = field(default_factory=dict)
    process: Mapping[str, float] = field(default_factory=dict)


def parse(text: str) -> WorkerMetrics:
    """Parses an exporter's answer (Prometheus text). Raises ValueError if it is something else."""
    tasks: dict[tuple[str, int], dict[str, float]] = {}
    process: dict[str, float] = {}
    # Most of the answer is about the JVM; parsing it would cost more than all the rest.
    wanted = "\n".join(line for line in text.splitlines() if line.startswith(WANTED)) + "\n"
    for family in text_string_to_metric_families(wanted):
        for sample in family.samples:
            # The average of no events is NaN.
            if not math.isfinite(sample.value):
                continue
            prefix = next((each for each in PREFIXES if sample.name.startswith(each)), None)
            if prefix is None:
                name = sample.name.removesuffix("_total")
                if name in PROCESS.values() and sample.labels.get("area", "heap") == "heap":
                    process[name] = process.get(name, 0.0) + sample.value
            elif (task := _task(sample.labels)) is not None:
                # Newer exporters remove the ending of counts.
                tasks.setdefault(task, {})[sample.name.removeprefix(prefix).removesuffix("_total")] = sample.value
    return WorkerMetrics(tasks, process)


def _task(labels: Mapping[str, str]) -> tuple[str, int] | None:
    if "connector" in labels and labels.get("task", "").isdigit():
        return labels["connector"], int(labels["task"])
    named = CLIENT.fullmatch(labels.get("client_id", labels.get("clientid", "")))
    return None if named is None else (named[1], int(named[2]))


def signs(workers: Iterable[WorkerMetrics], connector: str) -> dict[str, float]:
    """Aggregates the workers' metrics of a connector's tasks; unknown ones are absent.

    Besides `SIGNS` and `PROCESS`: tasks_put_share is the mean share of time in `put` over the busy tasks: average time
    of a put divided by average time between two polls, since a task alternates between poll and put.
    tasks_busiest_share is the share of the task with most records read; a put of 500 records can take seconds, and
    they count as put only afterwards. connect_compilation_seconds_total includes waiting for a core."""
    workers = list(workers)
    tasks = [task for worker in workers for (name, _), task in worker.tasks.items() if name == connector]
    found: dict[str, float] = {}
    for known, name in PROCESS.items():
        if workers and all(name in worker.process for worker in workers):
            found[known] = sum(worker.process[name] for worker in workers)
    # A task that has just started may show only some of its metrics.
    if not (counted := [task for task in tasks if "sink_record_send" in task]):
        return found
    found["tasks_put_total"] = sum(task["sink_record_send"] for task in counted)
    reads = [task.get("sink_record_read", task["sink_record_send"]) for task in counted]
    found["tasks_without_records"] = float(sum(count == 0 for count in reads))
    found["tasks_without_partitions"] = float(sum(task.get("partition_count") == 0 for task in counted))
    if sum(reads) > 0:
        found["tasks_busiest_share"] = max(reads) / sum(reads)
    busy = [task for task in counted if task["sink_record_send"] > 0]
    shares = [
        min(task["put_batch_avg_time_ms"] / task["time_between_poll_avg"], 1.0)
        for task in busy
        if task.get("time_between_poll_avg", 0) > 0 and "put_batch_avg_time_ms" in task
    ]
    if shares:
        found["tasks_put_share"] = fmean(shares)
    for name, sign in SIGNS.items():
        if values := [task[sign.source] for task in (busy if sign.busy else counted) if sign.source in task]:
            found[name] = sign.how(values)
    return found


@maps_exceptions(httpx.HTTPError)
class ConnectMetrics:
    """Asks all workers at the same time, some at once, and never delays a round of the probes for long."""

    def __init__(self, urls: Mapping[str, str], access: Access | None = None) -> None:
        """`urls` has the address of each worker's metrics by name; empty if they are not exported."""
        # Quoting three dozen names for each request would take a third of the time.
        self._urls = {name: httpx.URL(url).copy_merge_params({"name[]": ASKED}) for name, url in urls.items()}
        self._http = http_client(access or Access(), ANSWER_SECONDS)
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE, "metrics")
        self._asked: list[Future[tuple[WorkerMetrics, float]]] = []
        self._connector = ""
        self._next_at = -math.inf

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._http.close()

    def read(self, connector: str) -> dict[str, float]:
        """Returns the signs of `connector`; empty without metrics, within two seconds of the last time, or while
        workers have not answered. Raises ServiceError if one does not, and then returns nothing for ten seconds. What
        many workers say takes longer to read; it is then read less often."""
        if not self._urls or time.monotonic() < self._next_at:
            return {}
        if not self._asked or self._connector != connector:
            self._connector, self._asked = connector, self._ask()
        if wait(self._asked, ROUND_SECONDS if len(self._asked) <= MOST_AT_ONCE else 0).not_done:
            return {}
        asked, self._asked, self._next_at = self._asked, [], time.monotonic() + PAUSE_SECONDS
        answers = [each.result() for each in asked]
        took = sum(seconds for _, seconds in answers)
        self._next_at = time.monotonic() + max(SCRAPE_SECONDS, took / MOST_SHARE)
        return signs((worker for worker, _ in answers), connector)

    def last(self, connector: str, records: int) -> dict[str, float]:
        """Returns the signs of `connector` once all `records` are put, or after three seconds, since a put counts only
        when it has returned. Empty if a worker does not answer."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while self._urls:
            try:
                found = signs([each.result()[0] for each in self._ask()], connector)
            except httpx.HTTPError:
                break
            if found.get("tasks_put_total", records) >= records or time.monotonic() > deadline:
                return found
            time.sleep(0.2)
        return {}

    def _ask(self) -> list[Future[tuple[WorkerMetrics, float]]]:
        return [self._pool.submit(self._scrape, name, url) for name, url in self._urls.items()]

    def _scrape(self, name: str, url: httpx.URL) -> tuple[WorkerMetrics, float]:
        """Returns a worker's metrics, and the CPU seconds that it took to read them."""
        began = time.thread_time()
        answer = self._http.get(url)
        answer.raise_for_status()
        try:
            return parse(answer.text), time.thread_time() - began
        except ValueError as error:
            address = url.copy_with(query=None)
            raise httpx.DecodingError(f"{name} at {address} shows no metrics in Prometheus text: {error}") from None
