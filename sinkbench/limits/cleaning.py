"""Removes what a measurement has created, however that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from sinkbench.probes import CLIENT_ERRORS

__all__ = ["cleaning"]


@contextmanager
def cleaning(clean: Callable[[], None]) -> Iterator[None]:
    """Calls `clean` at the end; its failure does not hide why a measurement was broken off, but is raised after one
    that was not."""
    try:
        yield
    except BaseException:
        with suppress(*CLIENT_ERRORS):
            clean()
        raise
    clean()
