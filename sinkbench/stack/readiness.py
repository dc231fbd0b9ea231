"""What the checks of services that speak HTTP share."""

from __future__ import annotations

import functools
import threading

import httpx

from sinkbench.secrets import redacted
from sinkbench.services.access import Access
from sinkbench.services.http import http_client

__all__ = ["refusal", "said", "shared_client"]

# One client for all checks of a kind: each new one reads the certificates of the system again. They are asked for by
# several threads at once, of which the cache alone would let each make its own, and leave it open.
_making = threading.Lock()


@functools.cache
def _cached(access: Access, timeout_seconds: float, ca_changed_at: int) -> httpx.Client:
    client = http_client(access, timeout_seconds)
    # It is never closed, so no connection may stay open after an answer.
    client.headers["connection"] = "close"
    return client


def shared_client(access: Access, timeout_seconds: float) -> httpx.Client:
    """A client that all checks of such services use. It is not closed, and keeps no connection."""
    # A stack that is started again has another authority.
    changed_at = 0 if access.ca is None else access.ca.stat().st_mtime_ns
    with _making:
        return _cached(access, timeout_seconds, changed_at)


def said(answer: httpx.Response, most: int) -> str:
    """The first `most` characters of an answer, in one line."""
    # Before it is cut: half a secret would not be found any more.
    return " ".join(redacted(answer.text).split())[:most]


def refusal(answer: httpx.Response) -> str | None:
    """What a service says that does not answer with 200, in one short line; None if it does."""
    if answer.status_code == httpx.codes.OK:
        return None
    text = said(answer, 200)
    return f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip() + (f": {text}" if text else "")
