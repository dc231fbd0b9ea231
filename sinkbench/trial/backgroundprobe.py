"""Probes that hang hold up no other: each source is read in a thread of its own, and tells what it read last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Generic, TypeVar

from sinkbench.errors import ServiceTimeout
from sinkbench.trial.sampler import Sampler, Sources

__all__ = ["BackgroundProbe", "BackgroundSampler"]

# What was read longer ago tells nothing of now.
STALE_SECONDS = 2.5
# A read that hangs ends when its client gives up; nobody waits for that.
ENDING_SECONDS = 3.0

Read = TypeVar("Read")


class BackgroundProbe(Generic[Read]):
    """A source that is read again and again in its own thread.

    Called, it gives what it read last, at once, or raises what that raised; ServiceTimeout if it is too long ago.
    """

    def __init__(self, name: str, read: Callable[[], Read], interval_seconds: float) -> None:
        self._read = read
        self._name = name
        self._interval_seconds = interval_seconds
        self._stopping = threading.Event()
        self._last: tuple[float, Read | Exception] | None = None
        self._thread = threading.Thread(target=self._run, name=f"probe of {name}", daemon=True)

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it, or leaves it to end when its read does."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(ENDING_SECONDS)

    def __call__(self) -> Read:
        last = self._last
        if last is None or time.monotonic() - last[0] > STALE_SECONDS + self._interval_seconds:
            raise ServiceTimeout(f"{self._name}: no answer for {STALE_SECONDS + self._interval_seconds:g} s")
        found = last[1]
        if isinstance(found, Exception):
            raise found
        return found

    def _run(self) -> None:
        while not self._stopping.is_set():
            found: Read | Exception
            try:
                found = self._read()
            except Exception as error:  # noqa: BLE001 - raised again in the thread that asks
                found = error
            self._last = time.monotonic(), found
            self._stopping.wait(self._interval_seconds)


class BackgroundSampler(Sampler):
    """A sampler that goes on when a service answers nothing."""

    def __init__(
        self, sources: Sources, interval_seconds: float, slow_seconds: float, close: Callable[[], None]
    ) -> None:
        """
        Args:
            sources: where to read; each in one thread, beside those of the others.
            interval_seconds: time from one sample to the next, and between two looks at what is read fast.
            slow_seconds: between two looks at the rest.
            close: is called in the end.
        """
        intervals = {"sink": interval_seconds, "in_topic": interval_seconds}
        self._probes: dict[str, BackgroundProbe[Any]] = {
            each.name: BackgroundProbe(each.name, getattr(sources, each.name), intervals.get(each.name, slow_seconds))
            for each in fields(Sources)
        }
        self._close = close
        super().__init__(Sources(**self._probes), interval_seconds)

    def start(self) -> int:
        for each in self._probes.values():
            each.start()
        return super().start()

    def stop(self) -> None:
        super().stop()
        stopped: Sequence[threading.Thread] = [
            threading.Thread(target=each.stop, daemon=True) for each in self._probes.values()
        ]
        for thread in stopped:
            thread.start()
        for thread in stopped:
            thread.join()
        self._close()
