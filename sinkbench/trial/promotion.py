"""A replica that takes the place of its primary: the fault `promote`, and what a trial leaves of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sinkbench.stack import Stack
from sinkbench.trial.bench import Bench

__all__ = ["promoted", "usual_roles"]


@contextmanager
def promoted(stack: Stack) -> Iterator[None]:
    """The primary is dead, and a replica in its place; in the end what was the primary is a replica. StackError."""
    stack.promote()
    try:
        yield
    finally:
        stack.demote()


@contextmanager
def usual_roles(bench: Bench) -> Iterator[None]:
    """Has the primary be the first node again when the context is left, whatever happened in it. Raises StackError."""
    try:
        yield
    finally:
        bench.stack.restore_roles()
        # Connections to what was the primary meanwhile are of no more use.
        bench.refresh()
