"""Turns what an HTTP service wants before it answers into what its clients take."""

from __future__ import annotations

import ssl

import httpx

from sinkbench.stack import Access

__all__ = ["http_client", "tls"]


def tls(access: Access) -> ssl.SSLContext:
    """What a TLS client trusts: the access's own certificates, or those of the system.

    Raises OSError (ssl.SSLError is one) if the file cannot be read or holds no certificate.
    """
    return ssl.create_default_context(cafile=access.ca)


def http_client(access: Access, timeout_seconds: float) -> httpx.Client:
    """A client that shows its credentials with every request. A proxy set in the environment is not used."""
    auth = None if access.user is None else httpx.BasicAuth(access.user, access.password or "")
    headers = {} if access.api_key is None else {"authorization": f"ApiKey {access.api_key}"}
    return httpx.Client(timeout=timeout_seconds, trust_env=False, verify=tls(access), auth=auth, headers=headers)
