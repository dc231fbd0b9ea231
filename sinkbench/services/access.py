"""What a service wants before it answers. (Only the standard library is imported: the installer reads `stack`.)"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Access"]


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
