"""Queries that are asked during a load, at a constant rate, by a process of their own."""

from __future__ import annotations

from sinkbench.errors import StackError
from sinkbench.services.worker import WorkerFailed, Workers, answer_of, order
from sinkbench.trial.readprocess import Order, Told, ask

__all__ = ["Reader"]

END_SECONDS = 30.0
"""How long the last queries may take: longer than one is waited for."""


class Reader:
    """A process that asks as it is ordered; it ends with the context."""

    def __init__(self, what: Order) -> None:
        """Starts it, and returns when it is connected.

        Raises StackError if it cannot ask.
        """
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
        """Begins to ask, unless it has begun. Raises StackError if the process has died."""
        if not self._begun:
            self._begun = True
            self._order()

    def end(self) -> Told | None:
        """Asks no more, and returns what came of it; None if it had not begun. Raises StackError if it failed."""
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
        """Ends the process, once queries under way have ended. May be called again."""
        self._workers.close(END_SECONDS)
