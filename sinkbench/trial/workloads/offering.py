"""The load of a trial while it runs: offered at a constant rate, or already in the topic."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Generic, Self, TypeVar

from sinkbench.errors import ReasonCode, ServiceError, TrialFailed
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import Loaded

# A load may take this share of its time, plus some seconds, longer. Then it is aborted:
# the generator is too slow.
LATE_SHARE, LATE_SECONDS = 0.1, 5.0


Result = TypeVar("Result")


class Background(Generic[Result]):
    """Work in a separate thread, started once. The end of the context stops it and waits."""

    def __init__(self, name: str) -> None:
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._future: Future[Result] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(wait=True)

    def _submit(self, work: Callable[[], Result]) -> None:
        """Starts the work, which must check `_stop` while it waits."""
        self._future = self._pool.submit(work)

    def check(self) -> None:
        """Raises the error of the work, if it has ended with one."""
        if self._future is not None and self._future.done():
            self._future.result()


class Offering(Background[Loaded]):
    """A load in a separate thread. An early end of the context aborts it.

    After an error it finishes, unless late: a complete load can be audited.
    """

    def __init__(
        self, own: Resources, rate: float, late_seconds: float = LATE_SECONDS, loaded: Loaded | None = None
    ) -> None:
        """`rate` is in records per second; the load may take a tenth plus `late_seconds` longer. Nothing is left to do
        for a backlog that is `loaded` before the connector starts."""
        super().__init__("load")
        self._own = own
        self._rate = rate
        self._late_seconds = late_seconds
        self._began = 0.0
        self.loaded = loaded

    def __exit__(self, *raised: object) -> None:
        if isinstance(raised[1], TrialFailed | ServiceError | OSError) and self.loaded is None:
            self._let_end()
        super().__exit__(*raised)

    def begin(self) -> None:
        if self._future is None and self.loaded is None:
            self._began = time.monotonic()
            self._submit(partial(self._own.load_topic, self._rate, stop=self._stop))

    def check(self) -> None:
        """Raises TrialFailed if the load failed or is too slow."""
        super().check()
        if self._future is not None and not self._future.done() and self._seconds_left() < 0:
            due, taken = self._own.records / self._rate, time.monotonic() - self._began
            raise TrialFailed(
                f"the generator was the limit: after {taken:.0f} s it had not sent what was due in {due:.0f} s; offer"
                " less, or use more load generators",
                ReasonCode.GENERATOR_TOO_SLOW,
            )

    def result(self) -> Loaded:
        """Returns the result once all is stored. Raises TrialFailed if the load failed or has not begun."""
        if self.loaded is not None:
            return self.loaded
        if self._future is None:
            raise TrialFailed("the load was not begun, since the tasks did not start", ReasonCode.TASKS_NOT_STARTED)
        self.loaded = self._future.result()
        return self.loaded

    def _let_end(self) -> None:
        if self._future is None:
            return
        with suppress(TrialFailed, ServiceError, OSError, TimeoutError):
            self._own.observer.phase("letting the load end")
            self.loaded = self._future.result(max(self._seconds_left(), 0.0))

    def _seconds_left(self) -> float:
        due = self._own.records / self._rate
        return self._began + due * (1 + LATE_SHARE) + self._late_seconds - time.monotonic()
