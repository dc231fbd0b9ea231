"""Makes the folder that a secured stack keeps: `security.py` says what is in it."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from loadgen.certificate import WARN_BEFORE
from sinkbench.errors import StackError
from sinkbench.secrets import conceal
from sinkbench.stack import Say
from sinkbench.stack.certificates import Signed, issue, make_authority, valid_until, wrong_with
from sinkbench.stack.security import SERVICES, Security, kept_security
from sinkbench.stack.securityfiles import files_of_processes

__all__ = ["refuse_expired", "secure_processes"]

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
FOR_OURS = "delete ca.pem, node.pem and node.key there for certificates of sinkbench's own"
RENEWED = timedelta(days=30)
"""A certificate of ours that lasts no longer than that is made anew at a start."""
PASSWORD_BYTES = 24


def secure_processes(folder: Path, owner: tuple[int, int] | None, say: Say) -> Security:
    """Makes what is missing, and renews a certificate of ours that will expire or is not for these nodes.

    Args:
        folder: where the files are kept.
        owner: user and group of the services, who get the nodes' key; None if that is who we are.

    Raises:
        StackError: certificates of the user's own cannot be used, or a file cannot be written.
    """
    with _mended(folder):
        # The user's own may be for other names of this machine.
        security, signed, authority = _kept(folder, SERVICES, (*LOCAL_NAMES, socket.gethostname()), (), say)
        for name, content in files_of_processes(security, signed, authority).items():
            _write(folder / name, content, owner)
    return security


def refuse_expired(folder: Path) -> None:
    """Raises StackError if what running services of this folder show has expired: nobody would talk to them."""
    with _mended(folder):
        is_ours = (folder / "ca.key").exists()
        anew = "`sinkbench down`, then `up`"
        todo = f"{anew}, which renews it" if is_ours else f"replace it, then {anew}"
        for path in (folder / "node.pem", folder / "ca.pem"):
            if path.exists() and (end := valid_until(path.read_bytes())) <= datetime.now(UTC):
                when = f"{end:%Y-%m-%d %H:%M} UTC"
                raise StackError(f"{path}: the certificate of the running services has expired at {when}; {todo}")


@contextmanager
def _mended(folder: Path) -> Iterator[None]:
    """Raises what goes wrong with the files as StackError."""
    try:
        yield
    except OSError as error:
        raise StackError(f"{error.filename}: {error.strerror}; set SINKBENCH_HOME to a folder you can write") from None
    except ValueError:
        files = "ca.pem, ca.key, node.pem and node.key"
        raise StackError(f"{folder}: holds a damaged certificate or key; delete {files} there") from None


def _kept(
    folder: Path, services: Collection[str], names: Sequence[str], wanted: Collection[str], say: Say
) -> tuple[Security, Signed, bytes]:
    """Passwords, the nodes' certificate and the authority's, as they are or made anew.

    Args:
        folder: where they are kept.
        services: what has a password.
        names: what a certificate of ours is for.
        wanted: those of them that one of the user's own must be for.
        say: is told what is made anew.
    """
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    kept = kept_security(folder, services)
    passwords = kept.passwords if kept else {name: secrets.token_urlsafe(PASSWORD_BYTES) for name in services}
    security = Security(folder, passwords)
    # Before a file that depends on them, so that a second start finds what the first one has begun.
    _write(folder / "passwords", security.lines.encode())
    signed, authority = _certificates(folder, names, wanted, say)
    # The user's own may be readable by nobody else.
    _write(folder / "ca.pem", authority, mode=0o644)
    for each in passwords.values():
        conceal(each)
    return security, signed, authority


def _certificates(folder: Path, names: Sequence[str], wanted: Collection[str], say: Say) -> tuple[Signed, bytes]:
    """The nodes' certificate and the authority's, as they are or made anew; see `_kept`."""
    now = datetime.now(UTC)
    ca, ca_key, node, node_key = (folder / name for name in ("ca.pem", "ca.key", "node.pem", "node.key"))
    given = [path for path in (ca, node, node_key) if path.exists()]
    if given and not ca_key.exists():
        if absent := [path for path in (ca, node, node_key) if path not in given]:
            raise StackError(f"{absent[0]}: is missing; put it there, or {FOR_OURS}")
        signed, authority = Signed(node.read_bytes(), node_key.read_bytes()), ca.read_bytes()
        try:
            problem = wrong_with(signed, authority, wanted, now)
        except StackError as error:
            problem = str(error)
        if problem is not None:
            raise StackError(f"{node}: {problem}; replace it, or {FOR_OURS}")
        if (end := valid_until(signed.certificate)) - now < WARN_BEFORE:
            say(f"warning: {node} expires at {end:%Y-%m-%d %H:%M} UTC; replace it before")
        return signed, authority
    if ca_key.exists() and ca.exists() and valid_until(ca.read_bytes()) - now > RENEWED:
        root = Signed(ca.read_bytes(), ca_key.read_bytes())
    else:
        root = make_authority(now)
        _write(ca_key, root.key)
        _write(ca, root.certificate, mode=0o644)
    if node.exists() and node_key.exists():
        signed = Signed(node.read_bytes(), node_key.read_bytes())
        if wrong_with(signed, root.certificate, names, now + RENEWED) is None:
            return signed, root.certificate
        say("making a new certificate of the nodes")
    return issue(root, names, now), root.certificate


def _write(path: Path, content: bytes, owner: tuple[int, int] | None = None, mode: int = 0o600) -> None:
    """Writes a file that nobody else can read meanwhile, whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
        if owner is not None:
            os.fchown(file.fileno(), *owner)
    new.rename(path)
