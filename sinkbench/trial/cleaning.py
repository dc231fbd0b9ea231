"""Removes what a measurement has created, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from sinkbench.errors import ServiceError


@contextmanager
def cleaning(clean: Callable[[], None], recover: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Calls `clean` at the end. Raises its error only if the block raised none.

    If `clean` fails and `recover` has restarted a service, `clean` is called again; not after an interrupt.
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
