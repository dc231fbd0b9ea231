"""What is checked and set before any command: the place of the program, and how the C library keeps free memory."""

from __future__ import annotations

import ctypes
from pathlib import Path

from sinkbench.errors import SettingsError

# Of mallopt(3).
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
LARGE_BYTES, MOST_HEAPS = 256 << 10, 2


def check_place(program: Path, prefix: Path) -> None:
    """Raises SettingsError if the `program` that was called is in another virtual environment than `prefix`."""
    called = program.absolute().parent.parent
    if (called / "pyvenv.cfg").exists() and not called.samefile(prefix):
        raise SettingsError(
            f"{program}: is a program of {prefix}, so this checkout was moved or copied; run its scripts/setup, which"
            " makes .venv anew"
        )


def keep_few_heaps() -> bool:
    """Makes this process use few heaps and return large blocks at once; call it before threads start.

    glibc makes a heap for each of up to eight threads a core and keeps what is freed, which looked like a leak of 60 to
    400 MB an hour. Returns whether the C library supports it.
    """
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    # musl has the function, too, and says that it did nothing.
    return tell is not None and bool(tell(_ARENA_MAX, MOST_HEAPS)) and bool(tell(_MMAP_THRESHOLD, LARGE_BYTES))
