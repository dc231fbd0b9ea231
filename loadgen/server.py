"""loadgen's HTTP interface, by which others start a load, follow it and stop it.

    GET    /health   that it is there, and its version
    POST   /load     begins a load: the fields of `loadgen.options.Load` as a JSON object
    GET    /load     how the newest load is: `loadgen.state.LoadState`
    DELETE /load     stops it; with ?run=RUN only if it is of that run, so that nobody stops a load of somebody else

Whatever is refused is answered with {"error": one line}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from loadgen.errors import OptionsError
from loadgen.options import load_from
from loadgen.service import BusyError, LoadService
from loadgen.state import LoadState

__all__ = ["CANCEL_SECONDS", "make_app"]

MOST_BODY_BYTES = 64 << 10
LONGEST_ERROR = 1_000
# Longer than a load takes to give up what is in flight.
CANCEL_SECONDS = 7.0


def make_app(service: LoadService, bootstrap: str | None = None, cancel_seconds: float = CANCEL_SECONDS) -> Starlette:
    """The HTTP interface of `service`.

    Args:
        service: runs the loads.
        bootstrap: Kafka's address for loads that name none.
        cancel_seconds: how long a DELETE waits for the load's end before it answers that it is still running.
    """

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "version": _version()})

    async def start(request: Request) -> JSONResponse:
        values = await _read_object(request)
        if bootstrap is not None:
            values = {"bootstrap": bootstrap, **values}
        try:
            return _answer(service.start(load_from(values)), 201)
        except OptionsError as error:
            raise HTTPException(400, str(error)) from None
        except BusyError as error:
            raise HTTPException(409, str(error)) from None

    async def show(_request: Request) -> JSONResponse:
        return _answer(service.state)

    async def cancel(request: Request) -> JSONResponse:
        run = request.query_params.get("run")
        return _answer(await run_in_threadpool(service.cancel, cancel_seconds, run))

    return Starlette(
        routes=[
            Route("/health", health, methods=["GET"]),
            Route("/load", start, methods=["POST"]),
            Route("/load", show, methods=["GET"]),
            Route("/load", cancel, methods=["DELETE"]),
        ],
        exception_handlers={HTTPException: _refuse},
    )


def _answer(state: LoadState, status: int = 200) -> JSONResponse:
    return JSONResponse(state.model_dump(mode="json"), status)


async def _refuse(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    line = " ".join(error.detail.split())
    return JSONResponse({"error": line[:LONGEST_ERROR]}, error.status_code, error.headers)


async def _read_object(request: Request) -> Mapping[str, Any]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            raise HTTPException(413, f"body: has more than {MOST_BODY_BYTES:,} bytes; a load needs far less")
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"body: is not JSON ({error}); send an object with a load's options") from None
    if not isinstance(values, dict):
        raise HTTPException(400, f"body: found a JSON {type(values).__name__}; send an object with a load's options")
    return values


def _version() -> str:
    try:
        return version("sinkbench")
    except PackageNotFoundError:
        # Run from a checkout that is not installed.
        return "unknown"
