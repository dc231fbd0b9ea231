"""Watches the machine's command lines, in which no secret may ever stand."""

import contextlib
import threading
from collections.abc import Iterator

import psutil

LOOK_SECONDS = 0.02


class Watch:
    """The command lines of all processes that lived meanwhile, also of those that lived for a moment."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    @contextlib.contextmanager
    def going(self) -> Iterator[None]:
        over = threading.Event()

        def look() -> None:
            while not over.wait(LOOK_SECONDS):
                for each in psutil.process_iter():
                    with contextlib.suppress(psutil.Error):
                        self.seen.add(" ".join(each.cmdline()))

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
