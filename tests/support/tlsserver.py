"""An HTTP interface of ours on a real port, with a certificate that the test itself has issued, or without."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trustme
import uvicorn
from starlette.types import ASGIApp


@dataclass(frozen=True)
class Issued:
    """Files of a server's certificate, of its key, and of the certificate that signs it."""

    certificate: Path
    key: Path
    ca: Path


def issue(
    folder: Path, name: str = "server", *, begins: timedelta | None = None, ends: timedelta | None = None
) -> Issued:
    """A certificate for 127.0.0.1 from an authority of its own; `begins` and `ends` are counted from now."""
    now = datetime.now(UTC)
    authority = trustme.CA()
    issued = authority.issue_cert(
        "127.0.0.1", not_before=None if begins is None else now + begins, not_after=None if ends is None else now + ends
    )
    files = Issued(folder / f"{name}.pem", folder / f"{name}.key", folder / f"{name}-ca.pem")
    issued.cert_chain_pems[0].write_to_path(files.certificate)
    issued.private_key_pem.write_to_path(files.key)
    files.key.chmod(0o600)
    authority.cert_pem.write_to_path(files.ca)
    return files


@contextlib.contextmanager
def served(app: ASGIApp, issued: Issued | None = None) -> Iterator[int]:
    """The port of 127.0.0.1 that the application listens on; with TLS if a certificate is given."""
    tls = {} if issued is None else {"ssl_certfile": issued.certificate, "ssl_keyfile": issued.key}
    listener = socket.create_server(("127.0.0.1", 0))
    options: dict[str, Any] = {"log_config": None, "log_level": "error", "lifespan": "off", "ws": "none", **tls}
    server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=2, **options))
    thread = threading.Thread(target=server.run, args=([listener],), name="http", daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(5)
        listener.close()
