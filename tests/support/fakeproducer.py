"""A producer that needs no broker."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from loadgen.records import Message


def error_of(name: str) -> SimpleNamespace:
    return SimpleNamespace(name=lambda: name, str=lambda: f"Local: {name}")


class FakeProducer:
    """Queues up to `room` records; a poll reports on all of them: those whose key `fails` failed."""

    def __init__(self, room: int = 10**9, fails: Callable[[str], bool] = lambda _: False, silent: bool = False) -> None:
        self.room, self.fails, self.silent = room, fails, silent
        self.queue: list[tuple[str, Any]] = []
        self.taken: list[Message] = []
        self.polls_seconds: list[float] = []

    def produce_batch(self, _topic: str, messages: list[Message], *, on_delivery: Any) -> int:
        before = len(self.taken)
        for message in messages:
            key = str(message["key"])
            if key.startswith("huge"):
                message["_error"] = error_of("MSG_SIZE_TOO_LARGE")
            elif len(self.queue) >= self.room:
                message["_error"] = error_of("_QUEUE_FULL")
            else:
                self.queue.append((key, message.get("callback", on_delivery)))
                self.taken.append(message.copy())
        return len(self.taken) - before

    def poll(self, timeout: float) -> int:
        self.polls_seconds.append(timeout)
        if self.queue and not self.silent:
            self._report(None)
        else:
            time.sleep(timeout)
        return 0

    def flush(self, timeout: float) -> int:
        self.poll(timeout)
        return len(self.queue)

    def purge(self) -> None:
        self._report(error_of("_PURGE_QUEUE"))

    def _report(self, error: SimpleNamespace | None) -> None:
        while self.queue:
            key, callback = self.queue.pop(0)
            if error is not None or self.fails(key):
                callback(error or error_of("_MSG_TIMED_OUT"), None)

    def __len__(self) -> int:
        return len(self.queue)
