"""The load of a trial while it runs: one that is offered at a constant rate, or one that is in the topic already."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import Self

from sinkbench.errors import ReasonCode, ServiceError, TrialFailed
from sinkbench.trial.background import Background
from sinkbench.trial.bench import Loaded, TopicLoad
from sinkbench.trial.trial import Trial

__all__ = ["Backlog", "Offering"]

# So much longer than it should take may a load take before it is broken off: the generator cannot do it.
LATE_SHARE, LATE_SECONDS = 0.1, 5.0


class Offering(Background[Loaded]):
    """A load that is under way in a thread of its own; it is broken off when the context is left before its end."""

    def __init__(self, trial: Trial, rate: float, late_seconds: float = LATE_SECONDS) -> None:
        """`rate` is in records per second; beside a tenth of its time a load may take `late_seconds` longer."""
        super().__init__("load")
        self._trial = trial
        self._rate = rate
        self._late_seconds = late_seconds
        self._began = 0.0

    def begin(self) -> None:
        """Begins the load, unless it has begun."""
        if self._future is None:
            self._began = time.monotonic()
            trial = self._trial
            wanted = TopicLoad(trial.records, trial.cell.form, self._rate, trial.cell.acks)
            self._submit(partial(trial.bench.load, trial.names, wanted, lambda done: None, self._stop))

    def check(self) -> None:
        """Raises TrialFailed if the load failed, or takes so long that the generator cannot do it."""
        super().check()
        if self._future is not None and not self._future.done() and self._seconds_left() < 0:
            due, taken = self._trial.records / self._rate, time.monotonic() - self._began
            raise TrialFailed(
                f"the generator was the limit: after {taken:.0f} s it had not sent what was due in {due:.0f} s; offer"
                " less, or use more load generators",
                ReasonCode.GENERATOR_TOO_SLOW,
            )

    def _seconds_left(self) -> float:
        """How long the load may still take."""
        due = self._trial.records / self._rate
        return self._began + due * (1 + LATE_SHARE) + self._late_seconds - time.monotonic()

    def ended(self) -> Loaded | None:
        """What the load comes to where the trial has ended before it; None if it has not begun, fails or is late."""
        if self._future is None:
            return None
        with suppress(TrialFailed, ServiceError, OSError, TimeoutError):
            self._trial.observer.phase("letting the load end")
            return self._future.result(max(self._seconds_left(), 0.0))
        return None

    def result(self) -> Loaded:
        """What the load came to, once all of it is stored. Raises TrialFailed if it failed or has not begun."""
        if self._future is None:
            raise TrialFailed("the load was not begun, since the tasks did not start", ReasonCode.TASKS_NOT_STARTED)
        return self._future.result()


class Backlog:
    """A load that was in the topic before the connector: no more comes. It stands where an `Offering` could."""

    def __init__(self, loaded: Loaded) -> None:
        """`loaded` is what came of it."""
        self._loaded = loaded

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        return

    def begin(self) -> None:
        """Nothing is to begin."""

    def check(self) -> None:
        """Nothing can fail any more."""

    def ended(self) -> Loaded | None:
        """What it came to."""
        return self._loaded

    def result(self) -> Loaded:
        """The same."""
        return self._loaded
