"""An HTTP server in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HttpThread", "why_not_listening"]

POLL_SECONDS = 0.01
MOST_CONNECTIONS = 64
"""With more of them open a request gets 503."""
IDLE_SECONDS = 10
"""A connection that brings no whole request for so long is closed."""
LOOK_SECONDS = 1
GOODBYE_SECONDS = 1
"""How long a client has to end TLS in good order."""


class _Protocol(H11Protocol):
    def send_400_response(self, msg: str) -> None:
        # uvicorn would begin a second answer beside one that is on its way, and end in a traceback.
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.transport.close()
        else:
            super().send_400_response(msg)


class TlsLoop(asyncio.SelectorEventLoop):
    """Waits for a client within TLS no longer than without: asyncio gives it a minute to begin and half of one to end.

    A connection is known to `HttpThread` only after the beginning, and until the end.
    """

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:
        """As asyncio's, for a server with TLS."""
        limits = {"ssl_handshake_timeout": IDLE_SECONDS, "ssl_shutdown_timeout": GOODBYE_SECONDS}
        create: Callable[..., Coroutine[Any, Any, asyncio.Server]] = super().create_server
        return await create(*arguments, **options, **limits)


class HttpThread:
    """Answers requests until it is stopped. Handles no signals and keeps no process alive."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        grace_seconds: int,
        at_end: Callable[[], None] = lambda: None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """
        Args:
            listener: the socket; it is closed in the end.
            grace_seconds: how long an answer may take after `stop`.
            at_end: called in the thread when it ends, for whatever reason.
            tls: the server's side of TLS; None for plain HTTP.
        """
        self._listener = listener
        self._grace_seconds = grace_seconds
        self._at_end = at_end
        # asyncio sets it where a socket names its protocol, as ours do not: each answer would wait for 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = uvicorn.Config(
            app,
            http=_Protocol,
            log_config=None,
            log_level="error",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            # No proxy stands before it, so nobody else is to say by which scheme a client comes.
            proxy_headers=False,
            loop="auto" if tls is None else f"{__name__}:{TlsLoop.__name__}",
            ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            timeout_graceful_shutdown=grace_seconds,
            limit_concurrency=MOST_CONNECTIONS,
            callback_notify=self._close_idle,
            timeout_notify=LOOK_SECONDS,
        )
        self._idle: dict[H11Protocol, tuple[object, int]] = {}
        self._server = uvicorn.Server(config)
        # In the main thread uvicorn would install signal handlers.
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> bool:
        """Starts it; returns whether it answers requests."""
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(POLL_SECONDS)
        return self._server.started

    def stop(self) -> None:
        """Asks it to end; returns at once."""
        self._server.should_exit = True

    def join(self) -> None:
        """Waits for its end, a second longer than an answer may take."""
        self._thread.join(self._grace_seconds + 1)

    async def _close_idle(self) -> None:
        """Closes connections that have had no request for long enough."""
        opened = [each for each in self._server.server_state.connections if isinstance(each, H11Protocol)]
        waiting = [each for each in opened if each.cycle is None or each.cycle.response_complete]
        before, self._idle = self._idle, {}
        for connection in waiting:
            last, seconds = before.get(connection, (connection, 0))
            # It has just come, or has had a request since the last look: then that is another one than it was.
            seconds = seconds + LOOK_SECONDS if last is connection.cycle else 0
            self._idle[connection] = connection.cycle, seconds
            if seconds >= IDLE_SECONDS:
                connection.transport.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        finally:
            self._listener.close()
            self._at_end()


def why_not_listening(error: OSError) -> str:
    """Why an address cannot be bound, in a few words."""
    # create_server's own text repeats the address.
    return error.strerror.partition(" (while")[0] if error.strerror else str(error)
