"""Waiting for what takes a while, with an end."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Found = TypeVar("Found")


def until(look: Callable[[], Found], seconds: float = 60.0, passing: tuple[type[Exception], ...] = ()) -> Found:
    """What a look finds, once that is true; AssertionError after so many seconds. It may raise what is `passing`."""
    deadline, found = time.monotonic() + seconds, None
    while True:
        with suppress(*passing):
            found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"{found!r} after {seconds:g} s"
        time.sleep(0.1)
