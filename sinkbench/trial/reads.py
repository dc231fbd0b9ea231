"""Queries that are asked beside a load, at a constant rate, by a process of their own."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from sinkbench.errors import StackError
from sinkbench.trial.readorders import Order, Told

__all__ = ["Reader"]

END_SECONDS = 30.0
"""How long the last queries may take: longer than one is waited for."""


class Reader:
    """A process that asks as it is ordered; it ends with the context."""

    def __init__(self, order: Order) -> None:
        """Starts it, and returns when it is connected.

        Raises StackError if it cannot ask.
        """
        self._begun = False
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sinkbench.trial.readprocess", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())
        try:
            self._connection.send(order)
            refused = self._answer()
        except BaseException:
            self.close()
            raise
        if refused is not None:
            self.close()
            raise StackError(f"no queries are asked: {refused.problem}")

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self) -> None:
        """Begins to ask, unless it has begun."""
        if not self._begun:
            self._begun = True
            with suppress(OSError):
                self._connection.send(True)

    def end(self) -> Told | None:
        """Asks no more, and returns what came of it; None if it had not begun."""
        if not self._begun:
            return None
        with suppress(OSError):
            self._connection.send(True)
        return self._answer()

    def close(self) -> None:
        """Ends the process. May be called again."""
        self._connection.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answer(self) -> Told | None:
        try:
            if not self._connection.poll(END_SECONDS):
                raise StackError(f"the process that asks queries did not answer within {END_SECONDS:g} s")
            found: Told | None = self._connection.recv()
        except (EOFError, OSError):
            raise StackError("the process that asks queries has ended; see what it says above") from None
        return found
