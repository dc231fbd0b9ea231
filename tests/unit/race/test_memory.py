"""Memory that is free goes back to the system."""

from __future__ import annotations

import ctypes

import psutil
import pytest

from sinkbench.race.memory import give_back

BLOCK, BLOCKS = 64_000, 1_000


def test_what_was_freed_below_what_is_still_used_goes_back_to_the_system() -> None:
    library = ctypes.CDLL(None)
    if not hasattr(library, "malloc_trim"):
        pytest.skip("this C library has no malloc_trim")
    library.malloc.restype = ctypes.c_void_p
    blocks = [library.malloc(ctypes.c_size_t(BLOCK)) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK)
    *freed, used = blocks
    for block in freed:
        library.free(ctypes.c_void_p(block))
    before = psutil.Process().memory_info().rss
    give_back()
    after = psutil.Process().memory_info().rss
    library.free(ctypes.c_void_p(used))
    assert before - after > BLOCK * BLOCKS / 2
