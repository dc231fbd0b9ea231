"""What the logs of a stack's services say of a connector."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from sinkbench.errors import StackError
from sinkbench.services.causes import warnings_in
from sinkbench.stack import Stack

# A stack trace has about a hundred lines, and each task may have one.
LINES = 20_000


def logs_of(stack: Stack, connector: str, since: float = 0.0, *, alone: bool = False) -> list[Callable[[], list[str]]]:
    """What the workers' logs say of a connector in warnings and errors since a time in seconds since the epoch, then
    what those of the sinks' services say: each when it is called, the newest first; empty where no log is visible. What
    names no connector is another's unless it is `alone`."""
    endpoints, began = stack.endpoints, f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]

    def said(services: Iterable[str]) -> list[str]:
        found: list[str] = []
        for service in services:
            with suppress(StackError, OSError):
                found += [*warnings_in(stack.log_tail(service, LINES), connector, began, alone=alone)][::-1]
        return found

    sinks = [node for name, each in endpoints.sinks.items() for node in each.nodes or (name,)]
    return [partial(said, endpoints.connect), partial(said, sinks)]
