"""loadgen's HTTP interface, which starts, follows and stops a load.

    GET    /health   whether it runs; needs no password, for a container engine's checks
    GET    /clock    this machine's clock, in microseconds since the epoch
    POST   /load     begins a load: the fields of `loadgen.options.Load` as a JSON object
    PUT    /records  the user's own records for the next loads, as from `loadgen.dataset.store.Dataset.write`
    GET    /records  describes these: `loadgen.summary.DatasetFacts`, or null
    GET    /load     the newest load: `loadgen.summary.LoadState`
    DELETE /load     stops the load; with ?run=RUN only that run's

A refused request gets {"error": one line}. Pages in a browser on this machine reach loopback, too: Starlette checks
the requested Host (DNS rebinding), and a request with an Origin begins no load."""

import base64
import hmac
import ipaddress
import signal
import socket
import ssl
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, AuthenticationError, SimpleUser
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from loadgen.dataset.store import Dataset
from loadgen.errors import DatasetError, ExitCode, OptionsError
from loadgen.options import load_from
from loadgen.reading import parse_json, read_option
from loadgen.service import CANCEL_SECONDS, BusyError, LoadService
from loadgen.summary import MOST_BYTES_KEPT, LoadState

DEFAULT_LISTEN = "127.0.0.1:18090"
GRACE_SECONDS = 3
HEALTH = "/health"
MOST_BODY_BYTES = 64 << 10
# A data set keeps its first record even if that exceeds the limit.
MOST_RECORDS_BYTES = MOST_BYTES_KEPT + (32 << 20)
LONGEST_ERROR = 1_000


def make_app(
    service: LoadService,
    bootstrap: str | None = None,
    hosts: Collection[str] = ("*",),
    users: Mapping[str, str] | None = None,
) -> Starlette:
    """Returns the application of `service`, for the Host names `hosts`; without `users` every client has access."""
    middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)]
    if users:
        middleware.append(Middleware(AuthenticationMiddleware, backend=_Users(users), on_error=_not_let_in))

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def clock(_request: Request) -> JSONResponse:
        return JSONResponse({"us": time.time_ns() / 1000})

    async def start(request: Request) -> JSONResponse:
        if "origin" in request.headers:
            raise HTTPException(403, "Origin: pages of another site begin no load here")
        values = await _read_object(request)
        if bootstrap is not None:
            values = {"bootstrap": bootstrap, **values}
        return _answer(service.start(load_from(values)), 201)

    async def take_records(request: Request) -> JSONResponse:
        with NamedTemporaryFile() as file:
            async for chunk in _limited(request, MOST_RECORDS_BYTES):
                file.write(chunk)
            file.flush()
            dataset = await run_in_threadpool(Dataset.read, Path(file.name))
            if await run_in_threadpool(dataset.digest) != dataset.facts.sha256:
                raise DatasetError("body: is a data set that was changed on its way; send it again")
        service.dataset = dataset
        return JSONResponse(dataset.facts.model_dump(mode="json"), 201)

    async def show_records(_request: Request) -> JSONResponse:
        return JSONResponse(service.dataset and service.dataset.facts.model_dump(mode="json"))

    async def show(_request: Request) -> JSONResponse:
        return _answer(service.state)

    async def cancel(request: Request) -> JSONResponse:
        run = request.query_params.get("run")
        return _answer(await run_in_threadpool(service.cancel, CANCEL_SECONDS, run))

    return Starlette(
        routes=[
            Route(HEALTH, health, methods=["GET"]),
            Route("/clock", clock, methods=["GET"]),
            Route("/records", take_records, methods=["PUT"]),
            Route("/records", show_records, methods=["GET"]),
            Route("/load", start, methods=["POST"]),
            Route("/load", show, methods=["GET"]),
            Route("/load", cancel, methods=["DELETE"]),
        ],
        middleware=middleware,
        exception_handlers=dict.fromkeys(
            (HTTPException, OptionsError, DatasetError, BusyError, ClientDisconnect), _refuse
        ),
    )


def _answer(state: LoadState, status: int = 200) -> JSONResponse:
    return JSONResponse(state.model_dump(mode="json"), status)


async def _refuse(_request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, HTTPException):
        status, text, headers = error.status_code, error.detail, error.headers
    else:
        status, text, headers = 409 if isinstance(error, BusyError) else 400, str(error), None
    return JSONResponse({"error": " ".join(text.split())[:LONGEST_ERROR]}, status, headers)


def _not_let_in(_connection: HTTPConnection, error: AuthenticationError) -> JSONResponse:
    # The request's body is not read.
    headers = {"www-authenticate": 'Basic realm="loadgen", charset="UTF-8"', "connection": "close"}
    return JSONResponse({"error": str(error)}, 401, headers)


async def _limited(request: Request, most_bytes: int) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most_bytes:
            raise HTTPException(413, f"body: has more than {most_bytes:,} bytes; send less")
        yield chunk


async def _read_object(request: Request) -> Mapping[str, Any]:
    try:
        values = parse_json(b"".join([chunk async for chunk in _limited(request, MOST_BODY_BYTES)]))
    except ValueError as error:
        raise OptionsError(f"body: is not JSON ({error}); send an object with a load's options") from None
    if not isinstance(values, dict):
        raise OptionsError(f"body: found a JSON {type(values).__name__}; send an object with a load's options")
    return values


class _Users(AuthenticationBackend):
    """HTTP basic authentication of users by password; `HEALTH` needs none."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._known = {user: base64.b64encode(f"{user}:{word}".encode()) for user, word in users.items()}

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        if conn.scope["path"] == HEALTH:
            return None
        given = conn.headers.getlist("authorization")
        scheme, _, shown = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        credentials = shown.strip().encode()
        # Compares all, so that the time does not reveal which users exist.
        found = [user for user, each in self._known.items() if hmac.compare_digest(credentials, each)]
        if scheme.lower() != "basic" or not found:
            raise AuthenticationError(
                "Authorization: no known user and password; give those of a user in the file of --users"
            )
        return AuthCredentials(["load"]), SimpleUser(found[0])


def read_users(path: Path) -> dict[str, str]:
    """Reads `user:password` lines of a private file. Raises OptionsError with a line's number, without its content."""
    text = read_option(path, "users", private=True)
    users: dict[str, str] = {}
    for number, line in enumerate((each.removesuffix("\r") for each in text.split("\n")), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        user, _, password = line.partition(":")
        if not user or not password or user != user.strip() or password != password.strip() or not line.isprintable():
            raise OptionsError(f"users: {path}, line {number}: is not USER:PASSWORD without blanks around; correct it")
        if user in users:
            raise OptionsError(f"users: {path}, line {number}: its user is that of a line above; leave one of them")
        users[user] = password
    if not users:
        raise OptionsError(f"users: {path}: names no user; write a line USER:PASSWORD for each")
    return users


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
        # With more open connections a request gets 503.
        limit_concurrency=64,
        **more,
    )


def serve(
    listen: str, app: Starlette, service: LoadService, *, tls: dict[str, Any] | None = None, lacks: Sequence[str] = ()
) -> int:
    """Serves `app` until SIGTERM or Ctrl-C, then stops a running load; returns the exit code.

    Raises OptionsError if the address cannot be bound, or is not loopback though `lacks` names missing options."""
    listener = _listen(listen, lacks)
    host, port = listener.getsockname()[:2]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    print(f"loadgen: listening on {'http' if tls is None else 'https'}://{address}", flush=True)
    # uvicorn shuts down on a signal, then raises it again.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        uvicorn.Server(quiet_config(app, GRACE_SECONDS, **(tls or {}))).run(sockets=[listener])
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
    read_option(certificate, "tls-certificate")
    read_option(key, "tls-key", private=True)
    try:
        # Without a password a key that is encrypted would be asked for on the terminal.
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, "")
    except (ssl.SSLError, ValueError) as error:
        raise OptionsError(
            f"tls-certificate, tls-key: {certificate} and {key} are no certificate and its key in PEM format without a"
            f" passphrase ({getattr(error, 'reason', None) or 'no reason given'}); give others"
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
