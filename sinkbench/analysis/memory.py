"""The peak memory of services in a trial, from readings taken while the connector ran."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sinkbench.analysis.samples import Sample
from sinkbench.results import Memory
from sinkbench.topology import service_of

RESIDENT, HEAP = "_memory_bytes", "_heap_bytes"
"""Suffixes of signs after the service's name: resident memory of its processes, and used heap of its JVMs."""


def memory_peaks(samples: Sequence[Sample], path: Collection[str]) -> dict[str, Memory]:
    """The peak of each service in `path`, all workers as "connect"; what was never read is None or missing."""
    seen = {name for sample in samples for name in sample.signs}
    return {
        service: Memory(
            resident_bytes=_highest(samples, service + RESIDENT), heap_bytes=_highest(samples, service + HEAP)
        )
        for service in sorted(path)
        if not seen.isdisjoint((service + RESIDENT, service + HEAP))
    }


def total_memory_peak(samples: Sequence[Sample], path: Collection[str]) -> float | None:
    """The most bytes that the services in `path` used together at one moment; None if one could not be read."""
    there = {service_of(name) for sample in samples for name in sample.cpu_seconds} & set(path)
    wanted = [service + RESIDENT for service in sorted(there)]
    sums = [
        sum(sample.signs[name] for name in wanted) for sample in samples if all(name in sample.signs for name in wanted)
    ]
    return max(sums, default=None) if wanted else None


def _highest(samples: Sequence[Sample], sign: str) -> float | None:
    return max((each.signs[sign] for each in samples if sign in each.signs), default=None)
