"""What a trial with the fault `promote` leaves of the roles of a sink's nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sinkbench.sinks import needed
from sinkbench.trial.bench import Bench

__all__ = ["usual_roles"]


@contextmanager
def usual_roles(bench: Bench, sink: str) -> Iterator[None]:
    """Has the primary be the first node again when the context is left, whatever happened in it. Raises StackError."""
    try:
        yield
    finally:
        try:
            needed(needed(bench.stack.faults, "faults").promotion(sink), "promotion").restore()
        finally:
            # Connections to what was the primary meanwhile are of no more use.
            bench.refresh()
