"""The process that queries a sink at a constant rate, open loop, during a trial."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event

from sinkbench.analysis.query import Query
from sinkbench.errors import ServiceError
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import Sink, needed, open_sink
from sinkbench.stack import Endpoints

# With one connection, a slow query would delay those that become due meanwhile.
CONNECTIONS = 4


@dataclass(frozen=True)
class Order:
    """The queries, which are run in turn, their total rate per second, and the sink."""

    endpoints: Endpoints = field(repr=False)
    checkout: Path
    sink: str
    target: str
    queries: Sequence[Query]
    rate: float


@dataclass(frozen=True)
class Told:
    """Results of the queries.

    `latencies_us` are from when a query was due to its answer. `problem` is the first failure's message. `unasked`
    queries became due but did not start, since every connection was busy.
    """

    latencies_us: Sequence[float]
    failed: int = 0
    problem: str = ""
    cpu_seconds: float = 0.0
    unasked: int = 0


def ask_until(stop: Event, order: Order, sinks: Sequence[Sink]) -> Told:
    """Starts each query when it is due and a connection is free, until `stop` is set."""
    latencies: list[float] = []
    problems: list[str] = []
    ends: list[float] = []
    numbers, used = count(), time.process_time()
    start = time.monotonic()

    def work(sink: Sink) -> None:
        queries = needed(sink.capabilities.queries, "queries")
        # `next` of a count is atomic in the interpreter.
        for number in numbers:
            due = start + number / order.rate
            if stop.wait(max(0.0, due - time.monotonic())):
                ends.append(time.monotonic())
                return
            try:
                queries.ask(order.target, order.queries[number % len(order.queries)], explain=False)
            except ServiceError as error:
                problems.append(in_one_line(error))
            else:
                latencies.append((time.monotonic() - due) * 1e6)

    with ThreadPoolExecutor(len(sinks)) as pool:
        for done in [pool.submit(work, sink) for sink in sinks]:
            done.result()
    # Busy connections saw the end later.
    due, asked = int((min(ends) - start) * order.rate) + 1, len(latencies) + len(problems)
    return Told(
        latencies, len(problems), problems[0] if problems else "", time.process_time() - used, max(due - asked, 0)
    )


def ask(connection: Connection) -> None:
    """Main function of the process: connects, runs queries from the next message on, and ends with the one after."""
    order: Order = connection.recv()
    sinks = [open_sink(order.sink, order.endpoints, order.checkout) for _ in range(CONNECTIONS)]
    connection.send(None)
    connection.recv()
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(ask_until, stop, order, sinks)
        with suppress(EOFError):
            connection.recv()
        stop.set()
        for sink in sinks if told.exception() is None else ():
            sink.close()
        connection.send(told.result())
