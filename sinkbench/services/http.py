"""HTTP as all clients speak it: what a service wants before it answers, and what becomes of httpx's exceptions."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import httpx

from sinkbench.errors import ServiceError, ServiceTimeout
from sinkbench.services.access import Access
from sinkbench.services.failures import map_exceptions

__all__ = ["USER_AGENT", "http_client", "http_errors", "refuses_certificate", "tls"]

USER_AGENT = "sinkbench"
"""The controller's own name, so that no probe counts its connections as a connector's, or as another client's."""


def tls(access: Access) -> ssl.SSLContext:
    """What a TLS client trusts: the access's own certificates, or those of the system.

    Raises ServiceError if the file cannot be read or holds no certificate.
    """
    try:
        return _context(access.ca, None if access.ca is None else access.ca.stat().st_mtime_ns)
    except OSError as error:
        raise ServiceError(f"{access.ca}: cannot be used as the CA: {error.strerror or error}") from None


@lru_cache(maxsize=8)
def _context(ca: Path | None, changed_ns: int | None) -> ssl.SSLContext:
    # That of the system holds some hundred certificates, most of a megabyte; a race makes clients by the hundred.
    return ssl.create_default_context(cafile=ca)


@contextmanager
def http_errors() -> Iterator[None]:
    """Raises what httpx raises as ServiceError; as ServiceTimeout where no answer comes in time."""
    with map_exceptions(httpx.HTTPError), map_exceptions(httpx.TimeoutException, to=ServiceTimeout):
        yield


def refuses_certificate(error: BaseException) -> bool:
    """Whether a request failed since the server's certificate has expired, or is none that the client trusts."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, ssl.SSLCertVerificationError):
        # httpcore does not name the cause of its own.
        found = found.__cause__ or found.__context__
    return found is not None


def http_client(access: Access, timeout_seconds: float) -> httpx.Client:
    """A client that shows its credentials with every request. A proxy set in the environment is not used."""
    auth = None if access.user is None else httpx.BasicAuth(access.user, access.password or "")
    key = {} if access.api_key is None else {"authorization": f"ApiKey {access.api_key}"}
    headers = {"user-agent": USER_AGENT, **key}
    return httpx.Client(timeout=timeout_seconds, trust_env=False, verify=tls(access), auth=auth, headers=headers)
