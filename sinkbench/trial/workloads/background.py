"""Something that goes on in a thread of its own while a trial runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Self, TypeVar

__all__ = ["Background"]

Result = TypeVar("Result")


class Background(Generic[Result]):
    """Work that is begun once, and told to stop when its context is left, which waits until it has."""

    def __init__(self, name: str) -> None:
        """`name` is that of its thread."""
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._future: Future[Result] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(wait=True)

    def _submit(self, work: Callable[[], Result]) -> None:
        """Begins the work, which has to look at `_stop` while it waits."""
        self._future = self._pool.submit(work)

    def check(self) -> None:
        """Raises what the work has raised; nothing while it goes on, and before it has begun."""
        if self._future is not None and self._future.done():
            self._future.result()
