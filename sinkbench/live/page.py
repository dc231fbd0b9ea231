"""Serves the live run to a browser on this machine, with server-sent events.

    GET /              the page; and its style and program
    GET /events        event "state": {"id", "parts"}, first with every part of `sinkbench.live.state.Snapshot`, then
                       with the changed ones, at most twice a second; "ping" every 5 seconds; "end": {"ending"}

One thread does all of it, and nothing while no browser is connected."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable
from importlib.resources import files

import uvicorn
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from loadgen.server import quiet_config
from sinkbench.errors import SettingsError
from sinkbench.live.state import LiveRun

HOST = "127.0.0.1"
# How a browser here, or behind a tunnel, addresses this machine. Other names are DNS rebinding by foreign pages.
ONLY_HERE = [Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"], www_redirect=False)]
UPDATE_SECONDS = 0.5
PING_SECONDS = 5
RETRY_MS = 1000
# Time for the last event to reach every browser.
GRACE_SECONDS = 2
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def make_app(live: LiveRun) -> Starlette:
    run = secrets.token_hex(4)

    async def events(_request: Request) -> EventSourceResponse:
        return EventSourceResponse(
            _news(live, run),
            headers=HEADERS,
            ping=PING_SECONDS,
            ping_message_factory=lambda: ServerSentEvent(event="ping", data="", sep="\n"),
            sep="\n",
        )

    return Starlette(
        routes=[
            Route("/", _file("text/html", "sinkbench.live/page.html")),
            Route("/page.css", _file("text/css", "sinkbench.report/colours.css", "sinkbench.live/page.css")),
            Route("/page.js", _file("text/javascript", "sinkbench.live/page.js")),
            Route("/events", events),
        ],
        middleware=ONLY_HERE,
    )


async def _news(live: LiveRun, run: str) -> AsyncIterator[ServerSentEvent]:
    seen = 0
    while True:
        # Read first: if the run has ended, the news below are complete.
        ending = live.ending
        seen, news = live.news(seen)
        if news:
            data = json.dumps({"id": run, "parts": news}, separators=(",", ":"))
            yield ServerSentEvent(event="state", data=data, retry=RETRY_MS, sep="\n")
        if ending is not None:
            yield ServerSentEvent(event="end", data=json.dumps({"ending": ending}), sep="\n")
            return
        await asyncio.sleep(UPDATE_SECONDS)


def _file(kind: str, *names: str) -> Callable[[Request], Response]:
    """Answers with these files, `package/name`, concatenated."""
    places = [name.partition("/") for name in names]
    text = "".join(files(package).joinpath(name).read_text(encoding="utf-8") for package, _, name in places)
    return lambda _request: Response(text, headers=HEADERS, media_type=kind)


class Served:
    """Serves an application at a host's port, 0: any free one. Raises SettingsError if it is not available.

    Its thread takes no signals and keeps no process alive."""

    def __init__(self, app: Starlette, port: int, what: str, options: str, host: str = HOST) -> None:
        try:
            listener = socket.create_server((host, port))
        except OSError as error:
            # create_server's own text repeats the address.
            why = (error.strerror or str(error)).partition(" (while")[0].lower()
            raise SettingsError(
                f"{what}: port {port} cannot be listened on ({why}); stop what listens"
                f" there, or give another with {options}"
            ) from None
        for name in ("uvicorn.error", "sse_starlette", "asyncio"):
            # A disconnected browser must not print to the terminal.
            logging.getLogger(name).addHandler(logging.NullHandler())
        self.address = f"http://{host}:{listener.getsockname()[1]}/"
        # asyncio sets it only for sockets that name their protocol; without it each answer waits for 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server = uvicorn.Server(quiet_config(app, GRACE_SECONDS))
        self._listener = listener
        self._thread = threading.Thread(target=self._server.run, args=([listener],), name="http", daemon=True)

    def __enter__(self) -> Served:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(GRACE_SECONDS + 1)
        self._listener.close()


class LivePage(Served):
    def __init__(self, live: LiveRun, port: int) -> None:
        super().__init__(make_app(live), port, "live page", "--live-port or SINKBENCH_LIVE_PORT")
