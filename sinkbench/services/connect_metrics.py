"""The workers' own metrics: what each task of a connector spends its time on, as the Prometheus JMX exporter shows it.

`connect/metrics.yaml` makes the exporter show what is read here, under the names that its usual configurations give.
"""

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

__all__ = ["ConnectMetrics", "WorkerMetrics", "parse", "signs"]

SCRAPE_SECONDS = 2.0
# A worker that does not answer must not hold up the probes again and again.
PAUSE_SECONDS = 10.0
ANSWER_SECONDS = 2.0
# How long a put that has stored everything may take to come back and be counted.
SETTLE_SECONDS = 3.0
# What is read of each task.
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
# Exporters of Prometheus' own libraries give nothing else if they are asked by name: the rest of the JVM's metrics, the
# search for deadlocks among them, would more than double what it costs. Older ones end a count's name with "_total".
ASKED = [
    name + ending
    for name in (*(prefix + each for prefix, names in METRICS.items() for each in names), *PROCESS)
    for ending in ("", "_total")
]
# Signs by what they are made of: one value of each task, or of each that has had records, which is busy.
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
"""A task's metrics by JMX's names, with "_" for "-" and without "-total"; what has no value yet is absent."""


@dataclass(frozen=True)
class WorkerMetrics:
    """What one worker shows.

    Attributes:
        tasks: metrics of each of its tasks, by connector and number.
        process: CPU seconds so far, seconds of compiling and of garbage collection so far and bytes of the heap in use,
            by the names in `PROCESS`; absent where they are not shown.
    """

    tasks: Mapping[tuple[str, int], Task] = field(default_factory=dict)
    process: Mapping[str, float] = field(default_factory=dict)


def parse(text: str) -> WorkerMetrics:
    """Reads what an exporter answers (Prometheus text). ValueError if it is something else."""
    tasks: dict[tuple[str, int], dict[str, float]] = {}
    process: dict[str, float] = {}
    # Most of the answer tells of the JVM; to parse it would cost more than all the rest.
    wanted = "\n".join(line for line in text.splitlines() if line.startswith(WANTED)) + "\n"
    for family in text_string_to_metric_families(wanted):
        for sample in family.samples:
            # What has not happened yet has no average.
            if not math.isfinite(sample.value):
                continue
            prefix = next((each for each in PREFIXES if sample.name.startswith(each)), None)
            if prefix is None:
                name = sample.name.removesuffix("_total")
                if name in PROCESS and sample.labels.get("area", "heap") == "heap":
                    process[name] = process.get(name, 0.0) + sample.value
            elif (task := _task(sample.labels)) is not None:
                # Newer exporters drop the ending of a count that they are not told is one.
                tasks.setdefault(task, {})[sample.name.removeprefix(prefix).removesuffix("_total")] = sample.value
    return WorkerMetrics(tasks, process)


def _task(labels: Mapping[str, str]) -> tuple[str, int] | None:
    if "connector" in labels and labels.get("task", "").isdigit():
        return labels["connector"], int(labels["task"])
    named = CONSUMER.fullmatch(labels.get("client_id", labels.get("clientid", "")))
    return None if named is None else (named[1], int(named[2]))


def signs(workers: Iterable[WorkerMetrics], connector: str) -> dict[str, float]:
    """What the metrics of all workers tell of a connector's tasks together; absent is what they do not tell.

    Returns:
        tasks_put_share: share of their time that the tasks spend in `put`, the mean over those that have had records:
            the average time of a put through the average time between two polls, since a task polls and puts by turns.
        tasks_poll_share: share of their time that these tasks wait for records in `poll`, likewise.
        tasks_put_ms, tasks_put_max_ms: time of a put, average of all tasks and the longest.
        tasks_records_per_put: mean size of the batches that are put.
        tasks_read_total, tasks_put_total: records read from the topic, and handed to `put`, so far.
        tasks_active_records: records read and not committed yet.
        tasks_fetched_bytes_total: bytes that the tasks' consumers have received from Kafka so far, as they came.
        tasks_without_partitions, tasks_without_records: number of tasks that have none, or have read none.
        tasks_busiest_share: share of the records that the task with most of them has read; a put of 500 records can
            take seconds, until which none of them counts as put.
        tasks_lag_max_records, tasks_fetch_ms, tasks_commit_ms: the largest lag of a partition, the mean time of a fetch
            and that of a commit of offsets.
        tasks_running_share: share of their time that tasks were in the state RUNNING.
        connect_heap_bytes, connect_gc_seconds_total, connect_cpu_seconds_total: of all workers, whatever they do.
        connect_compilation_seconds_total: elapsed time of their compilers; those that wait for a core count, too.
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
    # A task that has begun on one worker and shows half of its metrics yet is none to reckon with.
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
    """One figure for each sign, by the name of its metric, of all tasks that show it; absent is what none shows."""
    values = {sign: [task[name] for task in tasks if name in task] for sign, name in names.items()}
    return {sign: how(each) for sign, each in values.items() if each}


@maps_exceptions(httpx.HTTPError)
class ConnectMetrics:
    """The metrics of all workers of one cluster. Used by one thread at a time."""

    def __init__(self, urls: Mapping[str, str], access: Access | None = None) -> None:
        """
        Args:
            urls: address of each worker's metrics by the worker's name; none where they are not shown.
            access: what they want before they answer.
        """
        # To quote three dozen names anew would take a third of the time of asking.
        self._urls = {name: httpx.URL(url).copy_merge_params({"name[]": ASKED}) for name, url in urls.items()}
        self._http = http_client(access or Access(), ANSWER_SECONDS)
        self._next_at = -math.inf

    def close(self) -> None:
        """Closes its connections."""
        self._http.close()

    def read(self, connector: str) -> dict[str, float]:
        """The signs of `connector` now; empty if there are no metrics, or less than two seconds after the last time.

        Raises ServiceError if a worker does not answer; then all are left alone for ten seconds.
        """
        if not self._urls or time.monotonic() < self._next_at:
            return {}
        self._next_at = time.monotonic() + PAUSE_SECONDS
        found = self._scrape(connector)
        self._next_at = time.monotonic() + SCRAPE_SECONDS
        return found

    def last(self, connector: str, records: int) -> dict[str, float]:
        """The signs of `connector` when all `records` should have been put, before it is deleted.

        It waits up to three seconds for these, since a put is counted only after it has come back.

        Returns:
            Nothing if there are no metrics or a worker does not answer.
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
