"""Measures whether the controller is a bottleneck, and prints the figures that docs/studies/controller.md quotes.

    .venv/bin/python -m benchmarks.controller [--seconds SECONDS]

Connect is simulated: each worker is an address of a server in a process of its own, which answers with the text of an
exporter for its tasks, and with the status of all tasks. Kafka and the sinks are those of the local stack, which is
started if it is down: a topic with a partition for each task, of which a group has committed every one, an index, and a
table. A trial's sampler asks all of them, both sinks in each round, for SECONDS (20) at 3, 30 and 100 workers with 10
tasks each; the last time one worker of 100 needs 1.5 s for each answer.
"""

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import uvicorn
from confluent_kafka import Consumer, TopicPartition
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.ownstack import local_cluster
from loadgen.server import quiet_config
from sinkbench.plan.plan import Plan
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.connect_metrics import CLIENT, CONSUMER, FETCH, OTHERS, PROCESS, SIGNS, ConnectMetrics
from sinkbench.services.kafka import group_of
from sinkbench.sinks import SinkReading
from sinkbench.stack import Usage
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names, cleaning
from sinkbench.trial.sampler import Sampler, Sources
from tests.support.ports import free_ports
from tests.support.waiting import until

TASKS, INTERVAL_SECONDS, SLOW_SECONDS = 10, 0.25, 1.5
PLAN = Plan.model_validate({"name": "controller", "pipelines": ["postgres/jdbc", "elasticsearch/camel-bulk"]})
SINKS = ("postgres", "elasticsearch")
NAMES = Names.of("c0c0c0_001")
CONNECTOR, GROUP = NAMES.connector, group_of(NAMES.connector)
MOST_ROUND_MS, MOST_SHARE = 250.0, 0.1


def exported(worker: int) -> str:
    """What the exporter of a worker answers: every metric of its tasks, and of the process."""
    lines = [f'{name}{{area="heap"}} 1.5' for name in PROCESS.values()]
    for task in range(worker * TASKS, (worker + 1) * TASKS):
        for name in [*(each.prefix + each.source for each in SIGNS.values()), *OTHERS]:
            client = CLIENT.pattern.replace("(.+)", CONNECTOR).replace(r"(\d+)", str(task))
            of_client = name.startswith((CONSUMER, FETCH))
            labels = f'client_id="{client}"' if of_client else f'connector="{CONNECTOR}",task="{task}"'
            lines.append(f"{name}{{{labels}}} 1234.5")
    return "\n".join(lines) + "\n"


def serve(port: int, workers: int, slow: float) -> None:
    answers = [exported(worker) for worker in range(workers)]
    tasks = [{"id": task, "state": "RUNNING", "worker_id": f"w{task // TASKS}"} for task in range(workers * TASKS)]
    status = {"connector": {"state": "RUNNING"}, "tasks": tasks}

    def metrics(request: Request) -> Response:
        worker = int(request.path_params["worker"])
        time.sleep(slow if worker == 0 else 0)
        return Response(answers[worker])

    routes = [
        Route("/worker/{worker}", metrics),
        Route(f"/connectors/{CONNECTOR}/status", lambda _: JSONResponse(status)),
    ]
    uvicorn.Server(quiet_config(Starlette(routes=routes), 1, port=port)).run()


@contextmanager
def served(workers: int, slow: float) -> Iterator[str]:
    (port,) = free_ports(1)
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(port, workers, slow), daemon=True)
    process.start()
    try:
        with ConnectCluster([f"http://127.0.0.1:{port}/connectors/{CONNECTOR}/status"]) as there:
            until(there.all_answer)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.join()


@contextmanager
def objects(cluster: Cluster, partitions: int) -> Iterator[None]:
    """The topic, what its group has committed, the index and the table."""
    # A client remembers the partitions of a topic.
    cluster.refresh()
    sinks = [cluster.sink(name) for name in SINKS]

    def clean() -> None:
        cluster.kafka.delete_group(GROUP)
        cluster.kafka.delete_topic(NAMES.topic)
        for sink in sinks:
            sink.drop(NAMES.target)

    with cleaning(clean):
        cluster.kafka.create_topic(NAMES.topic, partitions)
        endpoints = cluster.stack.endpoints
        settings = {"bootstrap.servers": endpoints.kafka, **endpoints.kafka_settings, "group.id": GROUP}
        consumer = Consumer(settings)
        offsets = [TopicPartition(NAMES.topic, number, 1) for number in range(partitions)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
        for sink in sinks:
            sink.create(NAMES.target)
        yield


def measured(cluster: Cluster, workers: int, seconds: float, slow: float) -> tuple[list[float], float, int, int]:
    """Milliseconds of each round, the controller's share of a core, its bytes, and how often it had all metrics."""
    partitions = workers * TASKS
    with objects(cluster, partitions), served(workers, slow) as url, ConnectCluster([url]) as connect:
        metrics = ConnectMetrics({f"w{worker}": f"{url}/worker/{worker}" for worker in range(workers)})
        began, rounds, committed = 0.0, list[float](), set[int]()

        def sink() -> SinkReading:
            nonlocal began
            began = time.monotonic()
            first, _ = (cluster.sink(name).read(NAMES.target) for name in SINKS)
            return first

        def last() -> Usage:
            rounds.append(1000 * (time.monotonic() - began))
            return Usage()

        def consumed() -> int:
            committed.add(cluster.kafka.committed(GROUP, NAMES.topic))
            return max(committed)

        sources = Sources(
            sink,
            lambda: sum(cluster.kafka.end_offsets(NAMES.topic).values()),
            consumed=consumed,
            status=lambda: connect.status(CONNECTOR),
            usage=last,
            tasks=lambda: metrics.read(CONNECTOR),
        )
        sampler = Sampler(sources, INTERVAL_SECONDS, {"status": 1.0, "consumed": 1.0}, metrics.close)
        before = os.times()
        sampler.start()
        time.sleep(seconds)
        sampler.stop()
        after = os.times()
    if committed != {partitions}:
        raise SystemExit(f"{partitions} partitions are committed, and {committed} were read")
    used = (after.user + after.system - before.user - before.system) / seconds
    whole = sum("tasks_put_total" in sample.signs for sample in sampler.samples)
    return rounds, used, psutil.Process().memory_info().rss, whole


def report(cluster: Cluster, seconds: float) -> None:
    print("workers  tasks  round ms: median, most  cores  memory MB  readings of all workers")
    for workers, slow in ((3, 0.0), (30, 0.0), (100, 0.0), (100, SLOW_SECONDS)):
        rounds, cores, memory, whole = measured(cluster, workers, seconds, slow)
        told = f"{statistics.median(rounds):21.0f}, {max(rounds):4.0f}  {cores:5.3f}  {memory / 1e6:9.0f}  {whole}"
        print(f"{workers:7}  {workers * TASKS:5}  {told}{', one of them slow' if slow else ''}", flush=True)
        kept = max(rounds) < MOST_ROUND_MS and cores < MOST_SHARE
        print("" if kept else f"         more than {MOST_ROUND_MS:.0f} ms, or {MOST_SHARE} of a core")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    seconds = parser.parse_args().seconds
    with local_cluster(PLAN) as cluster:
        report(cluster, seconds)


if __name__ == "__main__":
    main()
