"""Whether the JVMs of a trial were warm: CPU time of compiler and GC threads. With JMX only, `CompilationMXBean`
gives elapsed time, which includes the CPU time: what is warm by that is warm."""

from __future__ import annotations

from collections.abc import Sequence

from sinkbench.analysis.samples import CONTROLLER, Sample, cpu_between, middle, per_million, risen
from sinkbench.results import JvmCpu

COMPILER, GC = "_compiler_cpu_seconds_total", "_gc_cpu_seconds_total"
"""Suffixes of signs after the service's name."""
# From JMX, for all workers together.
_ELAPSED, _CPU = "connect_compilation_seconds_total", "connect_cpu_seconds_total"


def jvm_cpu_seconds(samples: Sequence[Sample], ending: str, start: float, end: float) -> dict[str, float]:
    """CPU seconds of each service's `COMPILER` or `GC` threads between two times; unknown and reset ones are left
    out."""
    names = dict.fromkeys(name for sample in samples for name in sample.signs if name.endswith(ending))
    found = {name.removesuffix(ending): _count(samples, name, start, end) for name in names}
    return {service: seconds for service, seconds in found.items() if seconds is not None}


def jvm_cpu_per_million(samples: Sequence[Sample], records: int) -> dict[str, JvmCpu]:
    """The CPU time of JIT and GC per million records, by service, in the `middle` of a drain of `records`."""
    window = middle(samples, records)
    if window is None:
        return {}
    compiling, collecting = (jvm_cpu_seconds(samples, ending, *window) for ending in (COMPILER, GC))
    return {
        name: JvmCpu(compiler=per_million(seconds, records), gc=per_million(collecting.get(name), records))
        for name, seconds in compiling.items()
    }


def compiling_share(samples: Sequence[Sample], start: float, end: float) -> float | None:
    """The share of compilation in the CPU time of all services, at most 1; None if unknown. With the workers' JMX
    only, it is the share of the workers' CPU time, which is no less; elapsed time may exceed CPU time."""
    # Counters are read less often than a window lasts, and would appear constant beyond the last reading.
    ending = COMPILER if any(name.endswith(COMPILER) for each in samples for name in each.signs) else _ELAPSED
    read_at = [each.seconds for each in samples if any(name.endswith(ending) for name in each.signs)]
    end = min(end, read_at[-1]) if read_at else end
    if compiling := jvm_cpu_seconds(samples, COMPILER, start, end):
        spent: float | None = sum(compiling.values())
        services = cpu_between(samples, start, end).items()
        used = sum(seconds for name, seconds in services if name != CONTROLLER and seconds is not None)
    else:
        spent, used = _count(samples, _ELAPSED, start, end), _count(samples, _CPU, start, end) or 0.0
    return None if spent is None or used <= 0 else min(spent / used, 1.0)


def _count(samples: Sequence[Sample], sign: str, start: float, end: float) -> float | None:
    """As `risen`; None if the count was reset by a restarted process."""
    found = risen(samples, sign, start, end)
    return None if found is None or found < 0 else found
