"""What the C library keeps of memory that is free."""

from __future__ import annotations

import ctypes

__all__ = ["give_back"]


def give_back() -> None:
    """Gives the system back what has been freed; does nothing with a C library that cannot.

    glibc has heaps for up to eight threads a core, and keeps in each what a trial's threads have freed. Over hours that
    looks like a leak.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
