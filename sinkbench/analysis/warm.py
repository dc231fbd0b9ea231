"""Whether the JVMs of a trial were warm: how much CPU time went into compiling, and into collecting garbage.

A JVM begins by interpreting, and compiles what turns out to be hot; what is measured before that is done is mostly its
compilers. Two sources tell of them. The CPU time of the compilers' threads is exact. Where only JMX can be asked, its
`CompilationMXBean` gives elapsed time, of which the CPU time is a part: what is warm by that is warm.
"""

from __future__ import annotations

from collections.abc import Sequence

from sinkbench.analysis.samples import CONTROLLER, Sample, cpu_between, middle, per_million, risen
from sinkbench.results import JvmCpu

COMPILER, GC = "_compiler_cpu_seconds_total", "_gc_cpu_seconds_total"
"""How the names of the signs end, after the service's."""
# By JMX, of all workers together.
_ELAPSED, _CPU = "connect_compilation_seconds_total", "connect_cpu_seconds_total"


def jvm_cpu_seconds(samples: Sequence[Sample], ending: str, start: float, end: float) -> dict[str, float]:
    """CPU seconds of each service's threads of one kind, `COMPILER` or `GC`, between two times of the samples' clock.

    A service whose threads were not seen, or whose counts began again, is not in it.
    """
    names = dict.fromkeys(name for sample in samples for name in sample.signs if name.endswith(ending))
    found = {name.removesuffix(ending): _count(samples, name, start, end) for name in names}
    return {service: seconds for service, seconds in found.items() if seconds is not None}


def jvm_cpu_per_million(samples: Sequence[Sample], records: int) -> dict[str, JvmCpu]:
    """What each service's JVMs spent on themselves in the `middle` of a drain of `records`, for a million of them."""
    window = middle(samples, records)
    if window is None:
        return {}
    compiling, collecting = (jvm_cpu_seconds(samples, ending, *window) for ending in (COMPILER, GC))
    return {
        name: JvmCpu(compiler=per_million(seconds, records), gc=per_million(collecting.get(name), records))
        for name, seconds in compiling.items()
    }


def compiling_share(samples: Sequence[Sample], start: float, end: float) -> float | None:
    """Share of the CPU time of all services that went into compiling.

    Where only the workers' JMX tells of compilers, it is the share of the workers' own CPU time, which is no less.
    None if nothing tells. At most 1: elapsed time may be longer than CPU time.
    """
    # The counts are read less often than a window is long, and beyond the last reading they would seem to stand still.
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
    """As `risen`; None if the count began again, as that of a process that was started anew."""
    found = risen(samples, sign, start, end)
    return None if found is None or found < 0 else found
