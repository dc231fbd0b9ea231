"""Runs queries at a constant rate, during a load, in a separate process."""

from __future__ import annotations

from sinkbench.errors import StackError
from sinkbench.services.worker import WorkerFailed, Workers, answer_of, order
from sinkbench.trial.readprocess import Order, Told, ask

END_SECONDS = 30.0
"""Longer than the timeout of a query."""


class Reader:
    """The process that runs the queries of an order. It ends with the context."""

    def __init__(self, what: Order) -> None:
        """Starts the process and waits until it is connected. Raises StackError if it cannot run queries."""
        self._begun = False
        self._workers = Workers()
        try:
            self._worker = self._workers.start(ask)
            order(self._worker, what)
            answer_of(self._worker, END_SECONDS)
        except BaseException as error:
            self.close()
            if isinstance(error, WorkerFailed):
                raise StackError(f"no queries are asked: {error}") from None
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self) -> None:
        """Starts the queries, once. Raises StackError if the process has died."""
        if not self._begun:
            self._begun = True
            self._order()

    def end(self) -> Told | None:
        """Stops the queries and returns the results; None if they had not started. Raises StackError."""
        if not self._begun:
            return None
        self._order()
        try:
            told: Told = answer_of(self._worker, END_SECONDS)
        except WorkerFailed as error:
            raise StackError(f"the queries during the load have no result: {error}") from None
        return told

    def _order(self) -> None:
        try:
            order(self._worker, True)
        except WorkerFailed as error:
            raise StackError(f"the queries during the load have ended: {error}") from None

    def close(self) -> None:
        """Ends the process after the current queries."""
        self._workers.close(END_SECONDS)
