"""Measures whether the controller is a bottleneck, and prints the figures that docs/studies/controller.md quotes.

    .venv/bin/python -m benchmarks.controller [--seconds SECONDS]

Connect is simulated: each worker is an address of a server in a process of its own, which answers with the text of an
exporter for its tasks, and with the status of all tasks. A trial's sampler asks for SECONDS (20) at 3, 30 and 100
workers with 10 tasks each; the last time one worker of 100 needs 1.5 s for each answer. Kafka and the sink are left
out: each is asked by one request, whatever its size.
"""

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from loadgen.server import quiet_config
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.connect_metrics import CLIENT, CONSUMER, FETCH, OTHERS, PROCESS, SIGNS, ConnectMetrics
from sinkbench.sinks import SinkReading
from sinkbench.stack import Usage
from sinkbench.trial.sampler import Sampler, Sources
from tests.support.ports import free_ports
from tests.support.waiting import until

TASKS, INTERVAL_SECONDS, SLOW_SECONDS = 10, 0.25, 1.5
CONNECTOR = "tides_a_001"
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


def measured(workers: int, seconds: float, slow: float = 0.0) -> tuple[list[float], float, int, int]:
    """Milliseconds of each round, the controller's share of a core, its bytes, and how often it had all metrics."""
    with served(workers, slow) as url, ConnectCluster([url]) as connect:
        metrics = ConnectMetrics({f"w{worker}": f"{url}/worker/{worker}" for worker in range(workers)})
        began, rounds = 0.0, []

        def first() -> SinkReading:
            nonlocal began
            began = time.monotonic()
            return SinkReading(0, None)

        def last() -> Usage:
            rounds.append(1000 * (time.monotonic() - began))
            return Usage()

        sources = Sources(first, lambda: 0, usage=last, tasks=lambda: metrics.read(CONNECTOR))
        sources = replace(sources, status=lambda: connect.status(CONNECTOR))
        sampler = Sampler(sources, INTERVAL_SECONDS, {"status": 1.0}, metrics.close)
        before = os.times()
        sampler.start()
        time.sleep(seconds)
        sampler.stop()
        after = os.times()
    used = (after.user + after.system - before.user - before.system) / seconds
    whole = sum("tasks_put_total" in sample.signs for sample in sampler.samples)
    return rounds, used, psutil.Process().memory_info().rss, whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    seconds = parser.parse_args().seconds
    print("workers  tasks  round ms: median, most  cores  memory MB  readings of all workers")
    for workers, slow in ((3, 0.0), (30, 0.0), (100, 0.0), (100, SLOW_SECONDS)):
        rounds, cores, memory, whole = measured(workers, seconds, slow)
        told = f"{statistics.median(rounds):21.0f}, {max(rounds):4.0f}  {cores:5.3f}  {memory / 1e6:9.0f}  {whole}"
        print(f"{workers:7}  {workers * TASKS:5}  {told}{', one of them slow' if slow else ''}", flush=True)
        kept = max(rounds) < MOST_ROUND_MS and cores < MOST_SHARE
        print("" if kept else f"         more than {MOST_ROUND_MS:.0f} ms, or {MOST_SHARE} of a core")


if __name__ == "__main__":
    main()
