"""Removes what a measurement has created, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from sinkbench.errors import ServiceError

__all__ = ["cleaning"]


@contextmanager
def cleaning(clean: Callable[[], None]) -> Iterator[None]:
    """Calls `clean` at the end. After an error in the block, an error of `clean` is suppressed; else it is raised."""
    try:
        yield
    except BaseException:
        with suppress(ServiceError):
            clean()
        raise
    clean()
