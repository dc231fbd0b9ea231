"""The process that asks a sink queries at a constant rate, open loop, while a trial runs: `python -m` this, FD.

FD is one end of a socket pair, by which the order comes, pickled. It ends when the other end of its socket closes.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from threading import Event

from sinkbench.errors import ServiceError
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import Sink, needed, open_sink
from sinkbench.trial.readorders import Order, Told

__all__ = ["ask_until", "main"]

# So many queries at once: with one connection a slow query would hold up those that are due meanwhile.
CONNECTIONS = 4


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


def main(descriptor: int) -> None:
    """Obeys one order, until the controller says that it is enough."""
    # Ctrl-C is for the controller, which ends this process itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(descriptor) as connection, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        order = connection.recv()
        try:
            sinks = [open_sink(order.sink, order.endpoints, order.checkout) for _ in range(CONNECTIONS)]
        except ServiceError as error:
            connection.send(Told([], 0, in_one_line(error)))
            return
        connection.send(None)
        connection.recv()
        stop = Event()
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(ask_until, stop, order, sinks)
            with suppress(EOFError):
                connection.recv()
            stop.set()
            connection.send(told.result())
        for sink in sinks:
            sink.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
