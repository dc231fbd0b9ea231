"""The workers' metrics of each task, from the Prometheus JMX exporter with `connect/metrics.yaml`."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

import httpx
from prometheus_client.parser import text_string_to_metric_families

from sinkbench.services.access import Access
from sinkbench.services.failures import maps_exceptions
from sinkbench.services.http import http_client

SCRAPE_SECONDS = 2.0
# A worker that does not answer must not delay the probes repeatedly.
PAUSE_SECONDS = 10.0
ANSWER_SECONDS = 2.0
# The time until the last put returns and is counted.
SETTLE_SECONDS = 3.0
METRICS = {
    "kafka_connect_sink_task_metrics_": (
        "put_batch_avg_time_ms",
        "put_batch_max_time_ms",
        "sink_record_read",
        "sink_record_send",
        "sink_record_active_count",
        "partition_count",
    ),
    "kafka_connect_connector_task_metrics_": ("running_ratio", "batch_size_avg", "offset_commit_avg_time_ms"),
    "kafka_consumer_consumer_metrics_": ("poll_idle_ratio_avg", "time_between_poll_avg", "incoming_byte"),
    "kafka_consumer_consumer_fetch_manager_metrics_": ("records_lag_max", "fetch_latency_avg"),
}
PREFIXES = tuple(METRICS)
CONSUMER = re.compile(r"connector-consumer-(.+)-(\d+)")
PROCESS = (
    "process_cpu_seconds",
    "jvm_compilation_time_seconds",
    "jvm_gc_collection_seconds_sum",
    "jvm_memory_used_bytes",
)
WANTED = (*PREFIXES, *PROCESS)
# Exporters based on Prometheus' own libraries return only these; the other metrics of the JVM, such as its search for
# deadlocks, would more than double the cost. Older ones add "_total" to names of counts.
ASKED = [
    name + ending
    for name in (*(prefix + each for prefix, names in METRICS.items() for each in names), *PROCESS)
    for ending in ("", "_total")
]
# Signs by their sources: one value per task, or per busy task, which has had records.
SUMS = {
    "tasks_read_total": "sink_record_read",
    "tasks_active_records": "sink_record_active_count",
    "tasks_fetched_bytes_total": "incoming_byte",
}
MEANS = {"tasks_running_share": "running_ratio"}
MEANS_OF_BUSY = {
    "tasks_poll_share": "poll_idle_ratio_avg",
    "tasks_put_ms": "put_batch_avg_time_ms",
    "tasks_records_per_put": "batch_size_avg",
    "tasks_fetch_ms": "fetch_latency_avg",
    "tasks_commit_ms": "offset_commit_avg_time_ms",
}
LARGEST_OF_BUSY = {"tasks_put_max_ms": "put_batch_max_time_ms", "tasks_lag_max_records": "records_lag_max"}

Task = Mapping[str, float]
"""A task's metrics by JMX's names, with "_" for "-" and without "-total"; absent without a value."""


@dataclass(frozen=True)
class WorkerMetrics:
    """The metrics of a worker's tasks by connector and number, and of its process by the names in `PROCESS`: CPU,
    compilation and garbage collection seconds so far, and bytes of heap in use; absent if not exported.
    """

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
                if name in PROCESS and sample.labels.get("area", "heap") == "heap":
                    process[name] = process.get(name, 0.0) + sample.value
            elif (task := _task(sample.labels)) is not None:
                # Newer exporters remove the ending of counts.
                tasks.setdefault(task, {})[sample.name.removeprefix(prefix).removesuffix("_total")] = sample.value
    return WorkerMetrics(tasks, process)


def _task(labels: Mapping[str, str]) -> tuple[str, int] | None:
    if "connector" in labels and labels.get("task", "").isdigit():
        return labels["connector"], int(labels["task"])
    named = CONSUMER.fullmatch(labels.get("client_id", labels.get("clientid", "")))
    return None if named is None else (named[1], int(named[2]))


def signs(workers: Iterable[WorkerMetrics], connector: str) -> dict[str, float]:
    """Aggregates the workers' metrics of a connector's tasks; unknown ones are absent.

    Returns:
        tasks_put_share: mean share of time in `put` over the tasks with records: average time of a put divided by
            average time between two polls, since a task alternates between poll and put.
        tasks_poll_share: likewise the share of waiting for records in `poll`.
        tasks_put_ms, tasks_put_max_ms: time of a put, the mean over all tasks and the maximum.
        tasks_read_total, tasks_put_total: records read from the topic, and passed to `put`, so far.
        tasks_active_records: records read and not committed yet.
        tasks_fetched_bytes_total: bytes received from Kafka so far, before decompression.
        tasks_busiest_share: share of the task with most records read; a put of 500 records can take seconds, and they
            count as put only afterwards.
        tasks_fetch_ms, tasks_commit_ms: mean times of a fetch and of a commit of offsets.
        connect_*: of all workers. connect_compilation_seconds_total is elapsed time, which includes waiting for a core.
    """
    workers = list(workers)
    tasks = [task for worker in workers for (name, _), task in worker.tasks.items() if name == connector]
    found: dict[str, float] = {}
    for sign, name in (
        ("connect_heap_bytes", "jvm_memory_used_bytes"),
        ("connect_gc_seconds_total", "jvm_gc_collection_seconds_sum"),
        ("connect_cpu_seconds_total", "process_cpu_seconds"),
        ("connect_compilation_seconds_total", "jvm_compilation_time_seconds"),
    ):
        if workers and all(name in worker.process for worker in workers):
            found[sign] = sum(worker.process[name] for worker in workers)
    # A task that has just started may show only some of its metrics.
    counted = [task for task in tasks if "sink_record_send" in task]
    if not counted:
        return found
    puts = [task["sink_record_send"] for task in counted]
    found["tasks_put_total"] = sum(puts)
    reads = [task.get("sink_record_read", put) for task, put in zip(counted, puts, strict=True)]
    found["tasks_without_records"] = float(sum(count == 0 for count in reads))
    if sum(reads) > 0:
        found["tasks_busiest_share"] = max(reads) / sum(reads)
    busy = [task for task, count in zip(counted, puts, strict=True) if count > 0]
    found["tasks_without_partitions"] = float(sum(task.get("partition_count") == 0 for task in counted))
    found |= _of_each(counted, SUMS, sum)
    shares = [
        min(task["put_batch_avg_time_ms"] / task["time_between_poll_avg"], 1.0)
        for task in busy
        if task.get("time_between_poll_avg", 0) > 0 and "put_batch_avg_time_ms" in task
    ]
    if shares:
        found["tasks_put_share"] = fmean(shares)
    found |= _of_each(busy, MEANS_OF_BUSY, fmean)
    found |= _of_each(counted, MEANS, fmean)
    return found | _of_each(busy, LARGEST_OF_BUSY, max)


def _of_each(tasks: Iterable[Task], names: Mapping[str, str], how: Callable[[list[float]], float]) -> dict[str, float]:
    """One figure per sign over the tasks that have its metric; absent without such a task."""
    values = {sign: [task[name] for task in tasks if name in task] for sign, name in names.items()}
    return {sign: how(each) for sign, each in values.items() if each}


@maps_exceptions(httpx.HTTPError)
class ConnectMetrics:
    def __init__(self, urls: Mapping[str, str], access: Access | None = None) -> None:
        """`urls` has the address of each worker's metrics by name; empty if they are not exported."""
        # Quoting three dozen names for each request would take a third of the time.
        self._urls = {name: httpx.URL(url).copy_merge_params({"name[]": ASKED}) for name, url in urls.items()}
        self._http = http_client(access or Access(), ANSWER_SECONDS)
        self._next_at = -math.inf

    def close(self) -> None:
        self._http.close()

    def read(self, connector: str) -> dict[str, float]:
        """Returns the signs of `connector`; empty without metrics, or within two seconds of the last time. Raises
        ServiceError if a worker does not answer, and then returns nothing for ten seconds.
        """
        if not self._urls or time.monotonic() < self._next_at:
            return {}
        self._next_at = time.monotonic() + PAUSE_SECONDS
        found = self._scrape(connector)
        self._next_at = time.monotonic() + SCRAPE_SECONDS
        return found

    def last(self, connector: str, records: int) -> dict[str, float]:
        """Returns the signs of `connector` once all `records` are put, or after three seconds, since a put counts only
        when it has returned. Empty if a worker does not answer.
        """
        deadline = time.monotonic() + SETTLE_SECONDS
        while self._urls:
            try:
                found = self._scrape(connector)
            except httpx.HTTPError:
                break
            if found.get("tasks_put_total", records) >= records or time.monotonic() > deadline:
                return found
            time.sleep(0.2)
        return {}

    def _scrape(self, connector: str) -> dict[str, float]:
        workers = []
        for name, url in self._urls.items():
            answer = self._http.get(url)
            answer.raise_for_status()
            try:
                workers.append(parse(answer.text))
            except ValueError as error:
                address = url.copy_with(query=None)
                raise httpx.DecodingError(f"{name} at {address} shows no metrics in Prometheus text: {error}") from None
        return signs(workers, connector)
