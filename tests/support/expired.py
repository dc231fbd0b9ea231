"""A secured stack's certificate that has expired in its folder, while the services run on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sinkbench.stack.certificates import Signed, issue

__all__ = ["an_expired_certificate"]

DAY = timedelta(days=1)


@contextlib.contextmanager
def an_expired_certificate(folder: Path) -> Iterator[Path]:
    """Puts one of its own authority there; afterwards the former one is there again. Gives its file."""
    path, root = folder / "node.pem", Signed((folder / "ca.pem").read_bytes(), (folder / "ca.key").read_bytes())
    former = path.read_bytes()
    # Written over, so that the file keeps its owner.
    path.write_bytes(issue(root, ("localhost",), datetime.now(UTC) - 3 * DAY, DAY).certificate)
    try:
        yield path
    finally:
        path.write_bytes(former)
