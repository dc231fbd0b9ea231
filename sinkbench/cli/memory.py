"""How the C library deals with memory that is free."""

from __future__ import annotations

import ctypes

__all__ = ["keep_few_heaps"]

# Of mallopt(3).
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
LARGE_BYTES, MOST_HEAPS = 256 << 10, 2


def keep_few_heaps() -> bool:
    """Has this process use few heaps, and give large blocks back at once; before it starts threads.

    glibc makes a heap for each of up to eight threads a core, and keeps in it what is freed. A race starts threads
    for every trial, and what these heaps kept looked like a leak: it grew by 60 to 400 MB an hour.

    Returns whether the C library can be told so; glibc can.
    """
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    # musl has the function, too, and says that it did nothing.
    return tell is not None and bool(tell(_ARENA_MAX, MOST_HEAPS)) and bool(tell(_MMAP_THRESHOLD, LARGE_BYTES))
