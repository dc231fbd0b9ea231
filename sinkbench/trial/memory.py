"""What the services of a stack hold in memory, as signs of the samples."""

from __future__ import annotations

from sinkbench.analysis.memory import RESIDENT
from sinkbench.analysis.samples import by_service
from sinkbench.stack import Stack

__all__ = ["memory_signs"]


def memory_signs(stack: Stack) -> dict[str, float]:
    """Bytes of memory now, by service, all its workers together, as `sinkbench.analysis` reads them.

    A service of which one process could not be seen is not in it.
    """
    held = by_service(stack.memory_bytes().items())
    return {service + RESIDENT: total for service, total in held.items() if total is not None}
