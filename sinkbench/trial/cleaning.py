"""Removes what a measurement has created, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from sinkbench.errors import ServiceError

__all__ = ["cleaning"]


@contextmanager
def cleaning(clean: Callable[[], None], recover: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Calls `clean` at the end. After an error in the block, an error of `clean` is suppressed; else it is raised.

    Before that `clean` is called once more, if `recover` has found something dead and started it again; it is not asked
    after an interrupt.
    """
    try:
        yield
    except BaseException as error:
        with suppress(ServiceError):
            _clean(clean, recover if isinstance(error, Exception) else lambda: False)
        raise
    _clean(clean, recover)


def _clean(clean: Callable[[], None], recover: Callable[[], bool]) -> None:
    try:
        clean()
    except ServiceError:
        if not recover():
            raise
        clean()
