"""What a worker does that asks a sink queries at a constant rate, open loop, while a trial runs."""

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

__all__ = ["Order", "Told", "ask", "ask_until"]

# Queries at once: with one connection a slow query would delay those that become due meanwhile.
CONNECTIONS = 4


@dataclass(frozen=True)
class Order:
    """What is asked, and where.

    Attributes:
        queries: are asked in turn.
        rate: queries per second, all together.
    """

    endpoints: Endpoints = field(repr=False)
    checkout: Path
    sink: str
    target: str
    queries: Sequence[Query]
    rate: float


@dataclass(frozen=True)
class Told:
    """What came of it.

    Attributes:
        latencies_us: from when a query was due to its answer, in microseconds; of those that were answered.
        failed: how many were not.
        problem: what the first of these said; empty if all were answered.
        cpu_seconds: that this process took.
        unasked: queries that were due, and not begun before the end, since every connection waited for an answer.
    """

    latencies_us: Sequence[float]
    failed: int = 0
    problem: str = ""
    cpu_seconds: float = 0.0
    unasked: int = 0


def ask_until(stop: Event, order: Order, sinks: Sequence[Sink]) -> Told:
    """Asks until `stop` is set: a query when it is due, or as soon as a connection is free."""
    latencies: list[float] = []
    problems: list[str] = []
    ends: list[float] = []
    numbers, used = count(), time.process_time()
    start = time.monotonic()

    def work(sink: Sink) -> None:
        queries = needed(sink.capabilities.queries, "queries")
        # `next` of a count is one step of the interpreter.
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
    # Connections that were busy saw the end later.
    due, asked = int((min(ends) - start) * order.rate) + 1, len(latencies) + len(problems)
    return Told(
        latencies, len(problems), problems[0] if problems else "", time.process_time() - used, max(due - asked, 0)
    )


def ask(connection: Connection) -> None:
    """Connects as an order says, asks from the next message on, and ends with the one after it."""
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
