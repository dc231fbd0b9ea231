"""An HTTP server in a thread of its own."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

__all__ = ["HttpThread", "why_not_listening"]

POLL_SECONDS = 0.01


class HttpThread:
    """Answers requests until it is stopped. Handles no signals and keeps no process alive."""

    def __init__(
        self, app: ASGIApp, listener: socket.socket, grace_seconds: int, at_end: Callable[[], None] = lambda: None
    ) -> None:
        """
        Args:
            listener: the socket; it is closed in the end.
            grace_seconds: how long an answer may take after `stop`.
            at_end: called in the thread when it ends, for whatever reason.
        """
        self._listener = listener
        self._grace_seconds = grace_seconds
        self._at_end = at_end
        config = uvicorn.Config(
            app,
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=grace_seconds,
        )
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
