"""What the services of a stack hold in memory and send over the network, as signs of the samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sinkbench.analysis.memory import RESIDENT
from sinkbench.analysis.network import RECEIVED, SENT
from sinkbench.analysis.samples import service_of
from sinkbench.stack import Stack

__all__ = ["by_service", "usage_signs"]


def usage_signs(stack: Stack) -> dict[str, float]:
    """Bytes of memory now, and bytes received and sent so far, by service as `sinkbench.analysis` reads them."""
    network = stack.network_bytes()
    return {
        **by_service(stack.memory_bytes().items(), RESIDENT),
        **by_service(((name, None if each is None else each.received) for name, each in network.items()), RECEIVED),
        **by_service(((name, None if each is None else each.sent) for name, each in network.items()), SENT),
    }


def by_service(values: Iterable[tuple[str, float | None]], ending: str) -> Mapping[str, float]:
    """The sum over the processes of each service, under the service's name and `ending`.

    A service of which one process could not be seen is not in it: a part of it would look like the whole.
    """
    sums: dict[str, float | None] = {}
    for name, value in values:
        service = service_of(name)
        before = sums.get(service, 0.0)
        sums[service] = None if value is None or before is None else before + value
    return {service + ending: total for service, total in sums.items() if total is not None}
