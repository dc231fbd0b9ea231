"""HTTP clients: credentials, TLS, and httpx's exceptions."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import httpx

from sinkbench.errors import ServiceError, ServiceTimeout
from sinkbench.services.access import Access
from sinkbench.services.failures import map_exceptions

USER_AGENT = "sinkbench"
"""Distinguishes the controller's connections from those of connectors and other clients."""


def tls(access: Access) -> ssl.SSLContext:
    """Returns a context that trusts the access's CA, or the system's. Raises ServiceError if it cannot be used."""
    try:
        return _context(access.ca, None if access.ca is None else access.ca.stat().st_mtime_ns)
    except OSError as error:
        raise ServiceError(f"{access.ca}: cannot be used as the CA: {error.strerror or error}") from None


@lru_cache(maxsize=8)
def _context(ca: Path | None, changed_ns: int | None) -> ssl.SSLContext:
    # Cached: the system's store has hundreds of certificates, almost a megabyte; a race makes hundreds of clients.
    return ssl.create_default_context(cafile=ca)


@contextmanager
def http_errors() -> Iterator[None]:
    """Raises httpx's exceptions as ServiceError, timeouts as ServiceTimeout."""
    with map_exceptions(httpx.HTTPError), map_exceptions(httpx.TimeoutException, to=ServiceTimeout):
        yield


def refuses_certificate(error: BaseException) -> bool:
    """Whether a request failed because the server's certificate has expired or is not trusted."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, ssl.SSLCertVerificationError):
        # httpcore does not set the cause of its exceptions.
        found = found.__cause__ or found.__context__
    return found is not None


def http_client(access: Access, timeout_seconds: float) -> httpx.Client:
    """Returns a client that sends its credentials with every request and ignores proxy variables."""
    auth = None if access.user is None else httpx.BasicAuth(access.user, access.password or "")
    key = {} if access.api_key is None else {"authorization": f"ApiKey {access.api_key}"}
    headers = {"user-agent": USER_AGENT, **key}
    return httpx.Client(timeout=timeout_seconds, trust_env=False, verify=tls(access), auth=auth, headers=headers)
