"""The memory of a trial: the most that each service held, out of what was read of it while the connector ran."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sinkbench.analysis.samples import Sample
from sinkbench.results import Memory
from sinkbench.topology import service_of

RESIDENT, HEAP = "_memory_bytes", "_heap_bytes"
"""How the names of the signs end, after the service's: what its processes hold, and its JVMs' heaps in use."""


def memory_peaks(samples: Sequence[Sample], path: Collection[str]) -> dict[str, Memory]:
    """The highest reading of each service, all workers as "connect"; what was never read is None, or absent.

    `path` has the services that the records pass: what runs idle meanwhile is left out.
    """
    seen = {name for sample in samples for name in sample.signs}
    return {
        service: Memory(
            resident_bytes=_highest(samples, service + RESIDENT), heap_bytes=_highest(samples, service + HEAP)
        )
        for service in sorted(path)
        if not seen.isdisjoint((service + RESIDENT, service + HEAP))
    }


def total_memory_peak(samples: Sequence[Sample], path: Collection[str]) -> float | None:
    """The most bytes that the services of a record's path held together, at one moment.

    Args:
        samples: of the whole trial.
        path: the services that the records pass; those that the stack does not have do not count.

    Returns:
        None if one of them could not be seen, or none of them is known.
    """
    there = {service_of(name) for sample in samples for name in sample.cpu_seconds} & set(path)
    wanted = [service + RESIDENT for service in sorted(there)]
    sums = [
        sum(sample.signs[name] for name in wanted) for sample in samples if all(name in sample.signs for name in wanted)
    ]
    return max(sums, default=None) if wanted else None


def _highest(samples: Sequence[Sample], sign: str) -> float | None:
    return max((each.signs[sign] for each in samples if sign in each.signs), default=None)
