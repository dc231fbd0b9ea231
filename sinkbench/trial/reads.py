"""Runs queries on a sink at a constant rate, open loop, in a separate process during a load."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event

from sinkbench.analysis.query import Query
from sinkbench.errors import ServiceError, StackError
from sinkbench.services.failures import in_one_line
from sinkbench.services.worker import WorkerFailed, Workers, answer_of, order
from sinkbench.sinks import Sink, needed, open_sink
from sinkbench.stack import Endpoints

# With one connection, a slow query would delay those that become due meanwhile.
CONNECTIONS = 4
# Longer than the timeout of a query.
END_SECONDS = 30.0


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
    queries became due but did not start, since every connection was busy."""

    latencies_us: Sequence[float]
    failed: int = 0
    problem: str = ""
    unasked: int = 0


def ask_until(stop: Event, what: Order, sinks: Sequence[Sink]) -> Told:
    """Starts each query when it is due and a connection is free, until `stop` is set."""
    latencies: list[float] = []
    problems: list[str] = []
    ends: list[float] = []
    numbers, start = count(), time.monotonic()

    def work(sink: Sink) -> None:
        queries = needed(sink.capabilities.queries, "queries")
        # `next` of a count is atomic in the interpreter.
        for number in numbers:
            due = start + number / what.rate
            if stop.wait(max(0.0, due - time.monotonic())):
                ends.append(time.monotonic())
                return
            try:
                queries.ask(what.target, what.queries[number % len(what.queries)], explain=False)
            except ServiceError as error:
                problems.append(in_one_line(error))
            else:
                latencies.append((time.monotonic() - due) * 1e6)

    with ThreadPoolExecutor(len(sinks)) as pool:
        for done in [pool.submit(work, sink) for sink in sinks]:
            done.result()
    # Busy connections saw the end later.
    due, asked = int((min(ends) - start) * what.rate) + 1, len(latencies) + len(problems)
    return Told(latencies, len(problems), next(iter(problems), ""), max(due - asked, 0))


def ask(connection: Connection) -> None:
    """Main function of the process: connects, runs queries from the next message on, and ends with the one after."""
    what: Order = connection.recv()
    sinks = [open_sink(what.sink, what.endpoints, what.checkout) for _ in range(CONNECTIONS)]
    connection.send(None)
    connection.recv()
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(ask_until, stop, what, sinks)
        with suppress(EOFError):
            connection.recv()
        stop.set()
        for sink in sinks if told.exception() is None else ():
            sink.close()
        connection.send(told.result())


class Reader(AbstractContextManager["Reader"]):
    """The process that runs the queries of an order. It ends with the context, after the current queries."""

    def __init__(self, what: Order) -> None:
        """Starts the process and waits until it is connected. Raises StackError if it cannot run queries."""
        self._workers = Workers()
        try:
            self._worker = self._workers.start(ask)
            self._exchange(what)
        except BaseException:
            self._workers.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._workers.close(END_SECONDS)

    def begin(self) -> None:
        """Starts the queries. Raises StackError if the process has died."""
        self._exchange(True, answers=False)

    def end(self) -> Told | None:
        """Stops the queries after `begin` and returns the results. Raises StackError."""
        return self._exchange(True)

    def _exchange(self, what: object, *, answers: bool = True) -> Told | None:
        try:
            order(self._worker, what)
            return answer_of(self._worker, END_SECONDS) if answers else None
        except WorkerFailed as error:
            raise StackError(f"no queries are asked of the sink: {error}") from None
