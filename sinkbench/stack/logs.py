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


def logs_of(stack: Stack, connector: str, since: float = 0.0) -> list[Callable[[], list[str]]]:
    """What the workers' logs say of a connector in warnings and errors since a time in seconds since the epoch, then
    what those of the sinks' services say: each when it is called, the newest first; empty where no log is visible."""
    endpoints, began = stack.endpoints, f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    sinks = [node for name, each in endpoints.sinks.items() for node in each.nodes or (name,)]
    return [partial(_said, stack, connector, began, services) for services in (endpoints.connect, sinks)]


def _said(stack: Stack, connector: str, began: str, services: Iterable[str]) -> list[str]:
    found: list[str] = []
    for service in services:
        with suppress(StackError, OSError):
            found += [*warnings_in(stack.log_tail(service, LINES), connector, began)][::-1]
    return found
