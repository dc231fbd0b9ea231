"""Makes the security folder of a local stack; `security.py` describes its content."""

from __future__ import annotations

import os
import secrets
import socket
from datetime import UTC, datetime
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.secrets import conceal
from sinkbench.stack.certificates import issue, make_authority
from sinkbench.stack.security import SERVICES, Security, kept_security
from sinkbench.stack.securityfiles import files_of_processes

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
PASSWORD_BYTES = 24


def secure_processes(folder: Path, owner: tuple[int, int] | None) -> Security:
    """Makes a new authority and node certificate, and passwords if there are none, in `folder`. `owner`, by default the
    current user, gets the nodes' key. Raises StackError if a file cannot be written.
    """
    try:
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        kept = kept_security(folder)
        passwords = kept.passwords if kept else {name: secrets.token_urlsafe(PASSWORD_BYTES) for name in SERVICES}
        security = Security(folder, passwords)
        # Before the files that depend on them, so that a second start continues an interrupted first one.
        write_file(folder / "passwords", security.lines.encode())
        now = datetime.now(UTC)
        authority = make_authority(now)
        signed = issue(authority, (*LOCAL_NAMES, socket.gethostname()), now)
        write_file(folder / "ca.pem", authority.certificate, mode=0o644)
        for name, content in files_of_processes(security, signed, authority.certificate).items():
            write_file(folder / name, content, owner)
    except OSError as error:
        raise StackError(f"{error.filename}: {error.strerror}; set SINKBENCH_HOME to a folder you can write") from None
    for each in passwords.values():
        conceal(each)
    return security


def write_file(path: Path, content: bytes, owner: tuple[int, int] | None = None, mode: int = 0o600) -> None:
    """Writes a file atomically; no other account can read it in the meantime."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
        if owner is not None:
            os.fchown(file.fileno(), *owner)
    new.rename(path)
