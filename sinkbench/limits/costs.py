"""The resources that services use while a plain client writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sinkbench.analysis.limits import CLIENT
from sinkbench.analysis.samples import Sample, cpu_seconds_per_million
from sinkbench.analysis.warm import compiling_share
from sinkbench.analysis.words import percent


@dataclass(frozen=True)
class Costs:
    """Resources that a measurement used.

    Attributes:
        cpu_seconds_per_million: by service, with sinkbench itself, and the clients as `CLIENT`; None is unknown.
        compiling_share: JIT compilers' share of all that CPU time.
        restarted: services whose counters began again.
    """

    cpu_seconds_per_million: Mapping[str, float | None] = field(default_factory=dict)
    compiling_share: float | None = None
    restarted: tuple[str, ...] = ()


def costs_between(before: Sample, after: Sample, records: int, clients_seconds: float) -> Costs:
    """Costs between two readings, in which `records` were stored and the clients used `clients_seconds` of CPU. The CPU
    time of a service that restarted in between is unknown.
    """
    pairs = {name: (before.cpu_seconds.get(name), seconds) for name, seconds in after.cpu_seconds.items()}
    restarted = tuple(name for name, (had, has) in pairs.items() if had is not None and has is not None and has < had)
    known = {name: seconds for name, seconds in after.cpu_seconds.items() if name not in restarted}
    samples = (
        replace(before, stored=0, cpu_seconds={**before.cpu_seconds, CLIENT: 0.0}),
        replace(after, stored=records, cpu_seconds={**known, CLIENT: clients_seconds}),
    )
    share = compiling_share(samples, before.seconds, after.seconds)
    return Costs(cpu_seconds_per_million(samples, records), share, restarted)


def disturbance(costs: Costs, most_compiling: float) -> str | None:
    """Why a measurement does not count; None if it does. `most_compiling` is the largest allowed `compiling_share`."""
    if costs.restarted:
        return f"{' and '.join(costs.restarted)} started again meanwhile"
    share = costs.compiling_share
    if share is not None and share > most_compiling:
        return f"not warm: {percent(share)} of the CPU time went into compiling"
    return None
