"""The process around loadgen's HTTP interface: its socket, and the ways in which it is asked to end."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType

from starlette.applications import Starlette

from loadgen.errors import EXIT_DONE, EXIT_INTERRUPTED, OptionsError
from loadgen.httpthread import HttpThread, why_not_listening
from loadgen.server import CANCEL_SECONDS
from loadgen.service import LoadService

__all__ = ["DEFAULT_LISTEN", "serve"]

DEFAULT_LISTEN = "127.0.0.1:18090"
GRACE_SECONDS = 3
BACKLOG = 128
STDIN = 0
# Reasons to end beside the numbers of signals.
EOF, SERVER_ENDED = 0, -1


def serve(listen: str, app: Starlette, service: LoadService, *, exit_on_eof: bool) -> int:
    """Answers requests until it is asked to end; then stops a load that is going on.

    Prints one line to standard output as soon as requests are answered.

    Args:
        listen: host:port; port 0 takes any that is free.
        app: the HTTP interface of `service`.
        service: what runs the loads.
        exit_on_eof: end when standard input closes, too.

    Returns:
        The exit code: 130 after Ctrl-C, else 0.

    Raises:
        OptionsError: the address cannot be listened on.
    """
    listener = _listen(listen)
    ends: SimpleQueue[int] = SimpleQueue()
    server = HttpThread(app, listener, GRACE_SECONDS, at_end=lambda: ends.put(SERVER_ENDED))
    with _signals_into(ends):
        if server.start():
            _announce(listener)
        if exit_on_eof:
            threading.Thread(target=_await_eof, args=(ends,), name="stdin", daemon=True).start()
        reason = ends.get()
        server.stop()
        service.cancel(CANCEL_SECONDS)
        server.join()
    if reason == SERVER_ENDED:
        raise RuntimeError("the HTTP server has ended by itself")
    return EXIT_INTERRUPTED if reason == signal.SIGINT else EXIT_DONE


def _listen(listen: str) -> socket.socket:
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise OptionsError(f"listen: found {listen!r}; give HOST:PORT, such as {DEFAULT_LISTEN}")
    try:
        family = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, int(port)), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OptionsError(
            f"listen: {listen} cannot be listened on ({why_not_listening(error)}); stop what listens there, or give"
            " another with --listen"
        ) from None


def _announce(listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    sys.stdout.write(f"loadgen: listening on http://{f'[{host}]' if ':' in host else host}:{port}\n")
    sys.stdout.flush()


@contextmanager
def _signals_into(ends: SimpleQueue[int]) -> Iterator[None]:
    """Puts SIGINT and SIGTERM into the queue, which is safe from within a handler. A second Ctrl-C ends at once."""
    seen: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and number in seen:
            raise KeyboardInterrupt
        seen.append(number)
        ends.put(number)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _await_eof(ends: SimpleQueue[int]) -> None:
    # Not by sys.stdin: a thread that waits in it when the process ends makes Python abort.
    try:
        while os.read(STDIN, 1 << 16):
            pass
    except OSError:
        # There is no standard input, which is closed enough.
        pass
    ends.put(EOF)
