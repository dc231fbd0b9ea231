"""Credentials of HTTP services. Standard library only, since the installer imports `stack`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names of this machine."""


@dataclass(frozen=True)
class Access:
    """Credentials of an HTTP service: none, user and password, or an API key (encoded, as Elasticsearch prints it).
    `ca` is a PEM file that signs the service's certificate; None for the system's.
    """

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    ca: Path | None = None


def curl(access: Access) -> str:
    """Returns the start of a curl command for such a service, quoted for a shell, for the user to complete.

    It is printed, so it contains no secret: curl prompts for the password, and reads the line "Authorization: ApiKey
    KEY" from the user's file API_KEY_FILE.
    """
    parts = ["curl"]
    if access.ca is not None:
        parts += ["--cacert", str(access.ca)]
    if access.user is not None:
        parts += ["-u", access.user]
    if access.api_key is not None:
        parts += ["-H", "@API_KEY_FILE"]
    return " ".join(each if each == "@API_KEY_FILE" else shlex.quote(each) for each in parts)
