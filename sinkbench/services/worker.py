"""Worker processes that run one function each and do not outlive the controller. They are forks of one process, which
is cheaper than new interpreters; pickled arguments pass through a socket, since command lines are visible to others."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

from sinkbench.errors import ServiceError, SinkbenchError
from sinkbench.services.failures import in_one_line

END_SECONDS = 5.0

Work = Callable[[Connection], None]
"""A module-level function; it ends when its connection does, which raises EOFError or OSError."""


class WorkerFailed(SinkbenchError):
    """A worker could not carry out its order; the text says why."""


def order(worker: Connection, what: object) -> None:
    """Raises WorkerFailed if the worker has died."""
    try:
        worker.send(what)
    except OSError:
        raise WorkerFailed("a worker process died") from None


def answer_of(worker: Connection, seconds: float) -> Any:
    """Returns what a worker sends next. Raises WorkerFailed if it died, failed, or sends nothing for `seconds`."""
    try:
        if not worker.poll(max(0.0, seconds)):
            raise WorkerFailed("a worker process did not answer in time")
        answer = worker.recv()
    except (EOFError, OSError):
        raise WorkerFailed("a worker process died") from None
    if isinstance(answer, ServiceError):
        raise WorkerFailed(str(answer))
    return answer


class Workers(AbstractContextManager["Workers"]):
    """The workers of one owner. No process is started before it is needed."""

    def __init__(self) -> None:
        self._parent: subprocess.Popen[bytes] | None = None
        self._orders: Connection | None = None
        self._ends: list[Connection] = []

    def start(self, work: Work) -> Connection:
        """Starts a worker and returns the connection to it. Raises WorkerFailed if that fails."""
        if self._parent is None or self._parent.poll() is not None or self._orders is None:
            self.close()
            self._parent, self._orders = _start_parent()
        ours, theirs = socket.socketpair()
        self._ends.append(Connection(ours.detach()))
        with theirs:
            try:
                send_handle(self._orders, theirs.fileno(), self._parent.pid)
                self._orders.send(work)
            except OSError:
                raise WorkerFailed("the parent of the worker processes died") from None
        return self._ends[-1]

    def close(self, grace_seconds: float = 0.0) -> None:
        """Ends all workers and waits for their end; they have `grace_seconds` to end themselves."""
        if self._parent is None or self._orders is None:
            return
        self._orders.close()
        _close(self._ends, grace_seconds)
        # The workers are in their parent's process group, whose id stays in use until the parent has been waited for.
        with suppress(ProcessLookupError):
            os.killpg(self._parent.pid, signal.SIGKILL)
        self._parent.wait(END_SECONDS)
        _close(self._ends, END_SECONDS)
        for end in self._ends:
            end.close()
        self._ends.clear()
        self._parent = self._orders = None

    def __exit__(self, *_: object) -> None:
        self.close()


def _close(ends: list[Connection], seconds: float) -> None:
    """Closes the sending ends, and waits until the workers close theirs."""
    deadline = time.monotonic() + seconds
    for end in ends:
        with suppress(EOFError, OSError), socket.socket(fileno=os.dup(end.fileno())) as connected:
            connected.shutdown(socket.SHUT_WR)
    for end in ends:
        with suppress(EOFError, OSError):
            while end.poll(max(0.0, deadline - time.monotonic())):
                end.recv()


def _start_parent() -> tuple[subprocess.Popen[bytes], Connection]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "sinkbench.services.worker", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            # Ctrl-C is for the controller only; the session is also the process group of the workers.
            start_new_session=True,
        )
    return process, Connection(ours.detach())


def main(descriptor: int) -> None:
    """Forks a worker for each socket that arrives, until the controller closes its end of the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # So that ended workers do not stay as zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with Connection(descriptor) as orders, suppress(EOFError, ConnectionError):
        while True:
            handle = recv_handle(orders)
            work: Work = orders.recv()
            if os.fork() == 0:
                try:
                    orders.close()
                    _run(work, handle)
                finally:
                    # The parent closes what this process inherited.
                    os._exit(0)
            os.close(handle)


def _run(work: Work, handle: int) -> None:
    with Connection(handle) as connection, suppress(EOFError, ConnectionError):
        try:
            work(connection)
        except (EOFError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001  its owner is waiting for an answer, whatever went wrong
            connection.send(ServiceError(in_one_line(error)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
