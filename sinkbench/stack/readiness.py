"""Common parts of the readiness checks of HTTP services."""

from __future__ import annotations

import functools
import threading

import httpx

from sinkbench.secrets import redacted
from sinkbench.services.access import Access
from sinkbench.services.http import http_client

# One client for all checks of a kind, since each new one reads the system's certificates. Several threads ask at once;
# the cache alone would let each make its own client and leave it open.
_making = threading.Lock()


@functools.cache
def _cached(access: Access, timeout_seconds: float, ca_changed_at: int) -> httpx.Client:
    client = http_client(access, timeout_seconds)
    # It is never closed, so no connection may stay open after an answer.
    client.headers["connection"] = "close"
    return client


def shared_client(access: Access, timeout_seconds: float) -> httpx.Client:
    """Returns a client that these checks share. It is never closed, and keeps no connections."""
    # A restarted stack has another authority.
    changed_at = 0 if access.ca is None else access.ca.stat().st_mtime_ns
    with _making:
        return _cached(access, timeout_seconds, changed_at)


def said(answer: httpx.Response, most: int) -> str:
    # Before it is cut, since a part of a secret would not be recognized.
    return " ".join(redacted(answer.text).split())[:most]


def refusal(answer: httpx.Response) -> str | None:
    """Returns in one line what a service answers instead of status 200; None if the status is 200."""
    if answer.status_code == httpx.codes.OK:
        return None
    text = said(answer, 200)
    return f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip() + (f": {text}" if text else "")
