"""What the services of a stack hold in memory, as signs of the samples."""

from __future__ import annotations

from sinkbench.analysis.memory import RESIDENT
from sinkbench.analysis.samples import service_of
from sinkbench.stack import Stack

__all__ = ["memory_signs"]


def memory_signs(stack: Stack) -> dict[str, float]:
    """Bytes of memory now, by service, all its workers together, as `sinkbench.analysis` reads them.

    A service of which one process could not be seen is not in it: a part of it would look like the whole.
    """
    sums: dict[str, float | None] = {}
    for name, value in stack.memory_bytes().items():
        service = service_of(name)
        before = sums.get(service, 0.0)
        sums[service] = None if value is None or before is None else before + value
    return {service + RESIDENT: total for service, total in sums.items() if total is not None}
