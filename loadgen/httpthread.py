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
    """Answers requests until it is stopped. It takes no signals and keeps no process alive."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        grace_seconds: int,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            app: what answers.
            listener: where requests come in; is closed in the end.
            grace_seconds: how long an answer that is going on may take when it is stopped.
            at_end: is called in the thread when it ends, however that comes.
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
        # Not in the main thread: there uvicorn would take the signals for itself.
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> bool:
        """Starts it and says whether it answers requests by now, or has failed to."""
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(POLL_SECONDS)
        return self._server.started

    def stop(self) -> None:
        """Asks it to end, and returns at once."""
        self._server.should_exit = True

    def join(self) -> None:
        """Waits for its end, a second longer than answers may take."""
        self._thread.join(self._grace_seconds + 1)

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        finally:
            self._listener.close()
            self._at_end()


def why_not_listening(error: OSError) -> str:
    """Why an address cannot be listened on, in a few words."""
    # create_server repeats the address in its text.
    return error.strerror.partition(" (while")[0] if error.strerror else str(error)
