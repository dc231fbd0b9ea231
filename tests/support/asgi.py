"""Requests to an application in this process."""

import asyncio
from typing import Any

import httpx
from starlette.types import ASGIApp


def ask(app: ASGIApp, method: str, path: str, **more: Any) -> httpx.Response:
    """What is answered; `more` are httpx's options of a request."""

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            return await client.request(method, path, **more)

    return asyncio.run(ask())
