"""What stands before an HTTP interface of ours: whose requests are answered, and how many.

A browser on the same machine reaches what listens on loopback, and so does every page that it shows. Such a page is
known by its Origin; one whose name was made to stand for this machine (DNS rebinding), by the Host that it asks for.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loadgen.reading import printable

__all__ = ["Guard"]

BODY_SECONDS = 120.0
"""A whole body must have come by then; the largest is a data set."""
MOST_PER_SECOND = 100.0
"""Requests that are answered in a second, on average; as many may come at once."""
LONGEST_NAME = 100


class Guard:
    """ASGI middleware that answers a request itself if its Host, its Origin or its rate is not as it should be.

    400: its Host is none of ours. 403: it comes from a page of somebody else's. 429: there were too many before it.
    408 is raised for a body that does not end.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str],
        *,
        any_address: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            hosts: the names, without ports, by which clients may call the server.
            any_address: whether a client may call it by any IP address, too; a name that is rebound is none.
        """
        self._app = app
        self._hosts = {host.lower() for host in hosts}
        self._any_address = any_address
        self._clock = clock
        self._left = MOST_PER_SECOND
        self._seen = clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = self._refusal(scope["scheme"], headers.get("host", ""), headers.getlist("origin"))
        if refused is None:
            await self._app(scope, self._until(receive), send)
            return
        status, error = refused
        # What is left of a body is not read.
        answer = JSONResponse({"error": error}, status, {"connection": "close"})
        await answer(scope, receive, send)

    def _refusal(self, scheme: str, host: str, origins: Collection[str]) -> tuple[int, str] | None:
        if not self._is_ours(host):
            known = "" if not self._any_address else "; use an IP address, or begin it with --host NAME"
            return 400, f"Host: {_shown(host)} is no name of this server{known}"
        for origin in origins:
            if origin.lower() != f"{scheme}://{host}".lower():
                return 403, f"Origin: {_shown(origin)} is another site; its pages get no answer here"
        if not self._takes_another():
            return 429, f"more than {MOST_PER_SECOND:g} requests a second; ask less often"
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, _ = parts.hostname, parts.port
        except ValueError:
            return False
        if not name or parts.netloc != host or "@" in host:
            return False
        if name in self._hosts:
            return True
        with suppress(ValueError):
            return self._any_address and bool(ipaddress.ip_address(name))
        return False

    def _takes_another(self) -> bool:
        """Whether one more request fits into the rate."""
        now = self._clock()
        self._left = min(MOST_PER_SECOND, self._left + (now - self._seen) * MOST_PER_SECOND)
        self._seen = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def _until(self, receive: Receive) -> Receive:
        """Receives a body within the time for it; after that it waits for ever, as for a browser to go away."""
        end = self._clock() + BODY_SECONDS
        whole = False

        async def received() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, end - self._clock()))
            except TimeoutError:
                raise HTTPException(408, f"body: did not end within {BODY_SECONDS:g} s; send it again") from None
            whole = not message.get("more_body", False)
            return message

        return received


def _shown(name: str) -> str:
    return printable(repr(name[:LONGEST_NAME]))
