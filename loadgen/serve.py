"""The process of loadgen's HTTP interface: its socket, who can reach it, and how it is asked to end."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from types import FrameType

from starlette.applications import Starlette

from loadgen.errors import ExitCode, OptionsError
from loadgen.httpthread import HttpThread, why_not_listening
from loadgen.server import CANCEL_SECONDS
from loadgen.service import LoadService

__all__ = ["DEFAULT_LISTEN", "handle_signals", "hosts_of", "lacking", "serve"]

DEFAULT_LISTEN = "127.0.0.1:18090"
GRACE_SECONDS = 3
BACKLOG = 128
STDIN = 0
# Reasons to end, besides the numbers of signals.
EOF, SERVER_ENDED = 0, -1


def serve(
    listen: str,
    app: Starlette,
    service: LoadService,
    *,
    exit_on_eof: bool,
    tls: ssl.SSLContext | None = None,
    lacks: Sequence[str] = (),
) -> int:
    """Serves `app`, the HTTP interface of `service`, until it is asked to end, then stops a running load.

    It listens on host:port, where port 0 is any free one, prints the address once it is ready, and returns the exit
    code, 130 after Ctrl-C, else 0.

    Args:
        exit_on_eof: whether it ends when standard input closes, too.
        tls: the server's side of TLS; None for plain HTTP.
        lacks: options for want of which it may listen on loopback alone.

    Raises OptionsError if the address cannot be bound, or is none of loopback though something lacks.
    """
    listener = _listen(listen, lacks)
    ends: SimpleQueue[int] = SimpleQueue()
    server = HttpThread(app, listener, GRACE_SECONDS, at_end=lambda: ends.put(SERVER_ENDED), tls=tls)
    seen: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        # A second Ctrl-C ends at once.
        if number == signal.SIGINT and number in seen:
            raise KeyboardInterrupt
        seen.append(number)
        # Of all queues only this kind is safe in a signal handler.
        ends.put(number)

    with handle_signals(on_signal):
        if server.start():
            _announce(listener, "http" if tls is None else "https")
        if exit_on_eof:
            threading.Thread(target=_await_eof, args=(ends,), name="stdin", daemon=True).start()
        reason = ends.get()
        server.stop()
        service.cancel(CANCEL_SECONDS)
        server.join()
    if reason == SERVER_ENDED:
        raise RuntimeError("the HTTP server has ended by itself")
    return ExitCode.INTERRUPTED if reason == signal.SIGINT else ExitCode.DONE


def hosts_of(listen: str) -> list[str]:
    """The names by which clients may call what listens there: the host's own, and this machine's."""
    name = socket.gethostname()
    return ["localhost", listen.rpartition(":")[0].removeprefix("[").removesuffix("]"), name, name.partition(".")[0]]


def lacking(*, tls: bool, users: bool, private_network: bool) -> list[str]:
    """The options for want of which it may listen on loopback alone: without them everybody may have it write to Kafka.

    On a private network, where nobody else is, none is needed.
    """
    if private_network:
        return []
    return [*([] if tls else ["--tls-certificate", "--tls-key"]), *([] if users else ["--users"])]


def _listen(listen: str, lacks: Sequence[str]) -> socket.socket:
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise OptionsError(f"listen: found {listen!r}; give HOST:PORT, such as {DEFAULT_LISTEN}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        # The address that is looked at is the one that is bound: a name may stand for another one the next time.
        if not lacks or _is_loopback(str(address[0])):
            return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        raise OptionsError(
            f"listen: {listen} cannot be listened on ({why_not_listening(error)}); stop what listens there, or give"
            " another with --listen"
        ) from None
    raise OptionsError(
        f"listen: {listen} can be reached from other machines, and nothing keeps them out; add {', '.join(lacks)}, or"
        " --private-network if nobody else is on its network"
    )


def _is_loopback(address: str) -> bool:
    # After % stands an interface of the machine.
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _announce(listener: socket.socket, scheme: str) -> None:
    host, port = listener.getsockname()[:2]
    print(f"loadgen: listening on {scheme}://{f'[{host}]' if ':' in host else host}:{port}", flush=True)


@contextmanager
def handle_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Has SIGINT and SIGTERM handled by `handler`."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _await_eof(ends: SimpleQueue[int]) -> None:
    # Not sys.stdin: Python aborts if a thread still waits in it at exit.
    # Without a standard input it is as good as closed.
    with suppress(OSError):
        while os.read(STDIN, 1 << 16):
            pass
    ends.put(EOF)
