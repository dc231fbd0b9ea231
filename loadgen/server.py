"""loadgen's HTTP interface, which starts, follows and stops a load.

    GET    /health   whether it runs, and its version; needs no password, for a container engine's checks
    POST   /load     begins a load: the fields of `loadgen.options.Load` as a JSON object
    PUT    /records  the user's own records for the next loads, as from `loadgen.dataset.store.Dataset.write`
    GET    /records  describes these: `loadgen.dataset.facts.DatasetFacts`, or null
    GET    /load     the newest load: `loadgen.summary.LoadState`
    DELETE /load     stops the load; with ?run=RUN only that run's

A refused request gets {"error": one line}. Pages in a browser on this machine reach loopback, too: Starlette checks
the requested Host (DNS rebinding), and a request with an Origin begins no load."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from starlette.applications import Starlette
from starlette.authentication import AuthenticationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from loadgen.dataset.facts import MOST_BYTES_KEPT
from loadgen.dataset.store import Dataset
from loadgen.errors import DatasetError, OptionsError
from loadgen.options import load_from
from loadgen.reading import parse_json
from loadgen.service import CANCEL_SECONDS, BusyError, LoadService
from loadgen.summary import LoadState
from loadgen.users import Users

HEALTH = "/health"
MOST_BODY_BYTES = 64 << 10
# A data set keeps its first record even if that exceeds the limit.
MOST_RECORDS_BYTES = MOST_BYTES_KEPT + (32 << 20)
LONGEST_ERROR = 1_000


def make_app(
    service: LoadService,
    bootstrap: str | None = None,
    cancel_seconds: float = CANCEL_SECONDS,
    hosts: Collection[str] = ("*",),
    users: Mapping[str, str] | None = None,
) -> Starlette:
    """Returns the application of `service`; without `users` every client has access.

    `cancel_seconds` limits the wait of a DELETE; `hosts` are the allowed Host names.
    """
    middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)]
    if users:
        backend = Users(users, open_paths=[HEALTH])
        middleware.append(Middleware(AuthenticationMiddleware, backend=backend, on_error=_not_let_in))

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "version": _version()})

    async def start(request: Request) -> JSONResponse:
        if "origin" in request.headers:
            raise HTTPException(403, "Origin: pages of another site begin no load here")
        values = await _read_object(request)
        if bootstrap is not None:
            values = {"bootstrap": bootstrap, **values}
        return _answer(service.start(load_from(values)), 201)

    async def take_records(request: Request) -> JSONResponse:
        with NamedTemporaryFile() as file:
            size = 0
            async for chunk in request.stream():
                size += len(chunk)
                if size > MOST_RECORDS_BYTES:
                    raise HTTPException(413, f"body: has more than {MOST_RECORDS_BYTES:,} bytes; send fewer records")
                file.write(chunk)
            file.flush()
            dataset = await run_in_threadpool(_read_dataset, Path(file.name))
        service.keep(dataset)
        return JSONResponse(dataset.facts.model_dump(mode="json"), 201)

    async def show_records(_request: Request) -> JSONResponse:
        dataset = service.dataset
        return JSONResponse(None if dataset is None else dataset.facts.model_dump(mode="json"))

    async def show(_request: Request) -> JSONResponse:
        return _answer(service.state)

    async def cancel(request: Request) -> JSONResponse:
        run = request.query_params.get("run")
        return _answer(await run_in_threadpool(service.cancel, cancel_seconds, run))

    return Starlette(
        routes=[
            Route(HEALTH, health, methods=["GET"]),
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


async def _read_object(request: Request) -> Mapping[str, Any]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            raise HTTPException(413, f"body: has more than {MOST_BODY_BYTES:,} bytes; a load needs far less")
    try:
        values = parse_json(body)
    except ValueError as error:
        raise OptionsError(f"body: is not JSON ({error}); send an object with a load's options") from None
    if not isinstance(values, dict):
        raise OptionsError(f"body: found a JSON {type(values).__name__}; send an object with a load's options")
    return values


def _read_dataset(path: Path) -> Dataset:
    dataset = Dataset.read(path)
    if not dataset.is_intact:
        raise DatasetError("body: is a data set that was changed on its way; send it again")
    return dataset


def _version() -> str:
    try:
        return version("sinkbench")
    except PackageNotFoundError:
        # A checkout that is not installed.
        return "unknown"
