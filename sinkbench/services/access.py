"""Credentials of HTTP services. Standard library only, since the installer imports `stack`."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names of this machine."""


@dataclass(frozen=True)
class Access:
    """Credentials of an HTTP service: none, user and password, or an API key (encoded, as Elasticsearch prints it).
    `ca` is a PEM file that signs the service's certificate; None for the system's."""

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    ca: Path | None = None


def curl(access: Access) -> str:
    """Returns the start of a curl command for a worker, quoted for a shell; curl prompts for the password."""
    ca = [] if access.ca is None else ["--cacert", str(access.ca)]
    return shlex.join(["curl", *ca, *([] if access.user is None else ["-u", access.user])])
