"""loadgen's HTTP interface, which starts, follows and stops a load.

    GET    /health   whether it runs, and its version
    POST   /load     begins a load: the fields of `loadgen.options.Load` as a JSON object
    PUT    /records  records of the user's own for the loads to come: what `loadgen.dataset.store.Dataset.write` writes
    GET    /records  what these are like: `loadgen.dataset.facts.DatasetFacts`, or null
    GET    /load     the newest load: `loadgen.state.LoadState`
    DELETE /load     stops the load; with ?run=RUN only that run's, so that nobody stops somebody else's

A request that is refused gets {"error": one line}; `loadgen.guard` says which are not looked at. Where there are users,
all but /health want one with a password. That one tells nothing that is worth one, and whoever looks whether a service
is well, such as a container's engine, would have to write the password where others see it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from loadgen.basicauth import BasicAuth
from loadgen.dataset.facts import MOST_BYTES_KEPT
from loadgen.dataset.store import Dataset
from loadgen.errors import DatasetError, OptionsError
from loadgen.guard import Guard
from loadgen.options import load_from
from loadgen.reading import parse_json
from loadgen.service import BusyError, LoadService
from loadgen.state import LoadState

__all__ = ["CANCEL_SECONDS", "make_app"]

HEALTH = "/health"
MOST_BODY_BYTES = 64 << 10
# A data set whose first record is longer than may be held has that alone.
MOST_RECORDS_BYTES = MOST_BYTES_KEPT + (32 << 20)
LONGEST_ERROR = 1_000
# Longer than a load takes to give up its records in flight.
CANCEL_SECONDS = 7.0


def make_app(
    service: LoadService,
    bootstrap: str | None = None,
    cancel_seconds: float = CANCEL_SECONDS,
    hosts: Collection[str] = (),
    users: Mapping[str, str] | None = None,
) -> Starlette:
    """The interface of `service`.

    Args:
        bootstrap: for loads that name none.
        cancel_seconds: how long a DELETE waits at most.
        hosts: names by which clients call it, besides IP addresses.
        users: the password of each user; without any, everybody is answered.
    """

    # First what costs least, so that guesses at a password come no faster than other requests.
    middleware = [Middleware(Guard, hosts=hosts, any_address=True)]
    if users:
        middleware.append(Middleware(BasicAuth, users=users, open_paths=[HEALTH]))

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "version": _version()})

    async def start(request: Request) -> JSONResponse:
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
