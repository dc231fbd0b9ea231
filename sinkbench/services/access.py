"""What a service wants before it answers. (Only the standard library is imported: the installer reads `stack`.)"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["LOOPBACK", "Access", "curl"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""What this machine calls itself."""


@dataclass(frozen=True)
class Access:
    """What an HTTP service wants before it answers: nothing, a user and a password, or a key of its own.

    Attributes:
        user, password: for HTTP's basic authentication.
        api_key: Elasticsearch's, encoded as it prints it.
        ca: file with the certificates (PEM) that sign the service's own; None for those that the system trusts.
    """

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    ca: Path | None = None


def curl(access: Access) -> str:
    """The beginning of a command that asks such a service, for a person to complete and run; a shell takes it.

    No secret is in it, since it is printed: curl asks for the password itself. An API key it reads from a file with the
    line "Authorization: ApiKey KEY", API_KEY_FILE, which is the reader's to name.
    """
    parts = ["curl"]
    if access.ca is not None:
        parts += ["--cacert", str(access.ca)]
    if access.user is not None:
        parts += ["-u", access.user]
    if access.api_key is not None:
        parts += ["-H", "@API_KEY_FILE"]
    # What needs no quotes gets none.
    return " ".join(each if each == "@API_KEY_FILE" else shlex.quote(each) for each in parts)
