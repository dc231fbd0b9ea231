"""The server process of loadgen's HTTP interface: its socket, access to it, and its end."""

from __future__ import annotations

import ipaddress
import signal
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import uvicorn
from starlette.applications import Starlette

from loadgen.errors import ExitCode, OptionsError
from loadgen.reading import read_bytes
from loadgen.service import CANCEL_SECONDS, LoadService

DEFAULT_LISTEN = "127.0.0.1:18090"
GRACE_SECONDS = 3
MOST_CONNECTIONS = 64
"""With more open connections a request gets 503."""


def quiet_config(app: Starlette, grace_seconds: int, **more: Any) -> uvicorn.Config:
    """A server that logs errors only, and ends requests that take longer than `grace_seconds` after its stop."""
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        # There is no proxy.
        proxy_headers=False,
        timeout_graceful_shutdown=grace_seconds,
        limit_concurrency=MOST_CONNECTIONS,
        **more,
    )


def serve(
    listen: str, app: Starlette, service: LoadService, *, tls: dict[str, Any] | None = None, lacks: Sequence[str] = ()
) -> int:
    """Serves `app` until SIGTERM or Ctrl-C, then stops a running load; returns the exit code.

    Raises OptionsError if the address cannot be bound, or is not loopback though `lacks` names missing options.
    """
    listener = _listen(listen, lacks)
    config = quiet_config(app, GRACE_SECONDS, **(tls or {}))
    host, port = listener.getsockname()[:2]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    print(f"loadgen: listening on {'http' if tls is None else 'https'}://{address}", flush=True)
    # uvicorn shuts down on a signal, then raises it again.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    finally:
        service.cancel(CANCEL_SECONDS)
    return ExitCode.DONE


def tls_options(certificate: Path | None, key: Path | None) -> dict[str, Any] | None:
    """Returns uvicorn's options for these PEM files; None without them. Raises OptionsError if they do not match."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise OptionsError("tls-certificate, tls-key: found one without the other; give both")
    for option, path in (("tls-certificate", certificate), ("tls-key", key)):
        try:
            read_bytes(path, lambda line, option=option: OptionsError(f"{option}: {line}"), private=path == key)  # type: ignore[misc]
        except FileNotFoundError:
            raise OptionsError(f"{option}: {path}: there is no such file; give another") from None

    def no_passphrase() -> str:
        raise OptionsError(f"tls-key: {key}: is encrypted; give one without a passphrase")

    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, no_passphrase)
    except ssl.SSLError as error:
        raise OptionsError(
            f"tls-certificate, tls-key: {certificate} and {key} are no certificate and its key in PEM format"
            f" ({error.reason or 'no reason given'}); give others"
        ) from None
    return {"ssl_certfile": certificate, "ssl_keyfile": key}


def hosts_of(listen: str) -> list[str]:
    """Names and addresses by which clients may address the server: the host's, and this machine's."""
    name = socket.gethostname()
    host = listen.rpartition(":")[0].removeprefix("[").removesuffix("]")
    addresses = {each.address.partition("%")[0] for some in psutil.net_if_addrs().values() for each in some}
    every = ["localhost", "127.0.0.1", "::1", host, name, name.partition(".")[0], *sorted(addresses)]
    return [f"[{each}]" if ":" in each else each for each in every]


def lacking(*, tls: bool, users: bool, private_network: bool) -> list[str]:
    """Returns the options without which it may listen on loopback only: any client could have it write to Kafka."""
    if private_network:
        return []
    return [*([] if tls else ["--tls-certificate", "--tls-key"]), *([] if users else ["--users"])]


def _listen(listen: str, lacks: Sequence[str]) -> socket.socket:
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise OptionsError(f"listen: found {listen!r}; give HOST:PORT, such as {DEFAULT_LISTEN}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        # Checks the bound address, since a name may resolve differently the next time.
        if not lacks or ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
            listener = socket.create_server(address, family=family)
            # asyncio sets it only for sockets that name their protocol; without it each answer waits for 40 ms.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return listener
    except OSError as error:
        # create_server's own text repeats the address.
        why = error.strerror.partition(" (while")[0] if error.strerror else str(error)
        raise OptionsError(
            f"listen: {listen} cannot be listened on ({why}); stop what listens there, or give another with --listen"
        ) from None
    raise OptionsError(
        f"listen: {listen} can be reached from other machines without a password; add {', '.join(lacks)}, or"
        " --private-network if only your own clients are on its network"
    )
