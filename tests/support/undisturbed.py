"""Measurements that are taken again where the machine stood still, whatever came of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

Taken = TypeVar("Taken")
# Services that use both cores let a thread wait for tens of milliseconds.
STILL_SECONDS = 0.5
TICK_SECONDS = 0.01


def undisturbed(take: Callable[[Path], Taken], folder: Path) -> Taken:
    """What `take` measures in its own folder; measured once more if a thread of this process had to wait meanwhile."""
    for name in ("first", "second"):
        (folder / name).mkdir()
        with longest_wait() as waited:
            taken = take(folder / name)
        if waited() < STILL_SECONDS:
            break
    return taken


@contextmanager
def longest_wait() -> Iterator[Callable[[], float]]:
    """How many seconds too late a thread that sleeps again and again has woken up at most."""
    latest, over = [0.0], threading.Event()

    def tick() -> None:
        while not over.is_set():
            due = time.monotonic() + TICK_SECONDS
            over.wait(TICK_SECONDS)
            latest[0] = max(latest[0], time.monotonic() - due)

    thread = threading.Thread(target=tick, name="tick", daemon=True)
    thread.start()
    try:
        yield lambda: latest[0]
    finally:
        over.set()
        thread.join()
