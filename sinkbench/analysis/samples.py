"""The samples of a trial, and figures computed from them; among these whether its JVMs were warm."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sinkbench.analysis.rates import HIGH_SHARE, LOW_SHARE, most, progress
from sinkbench.results import JvmCpu, Memory
from sinkbench.topology import service_of

MACHINE, STOLEN = "machine_cpu_seconds_total", "machine_stolen_seconds_total"
"""Signs of the machine: CPU seconds in which cores were busy or stolen, and those stolen by a hypervisor."""
OTHER_CONNECTIONS, OTHER_POOL_CLIENTS = "other_connections", "other_pool_clients"
"""Signs of a sink: its connections, and its pooler's clients, that were open before a trial's connector."""
CONTROLLER = "controller"
"""sinkbench's own name among services whose CPU is counted."""
MUCH_FOREIGN = 0.10
"""Above this share of the cores, foreign load makes rates hard to compare between runs."""
FEWEST_FOR_DISK = 100_000
"""Of fewer records the sink's preallocated files and unmerged segments are most of what it takes."""
# Fields of a sample with several values, which get separate columns.
NOT_FLAT = ("cpu_seconds", "problems", "troubles", "signs", "silent")
# Fewer cannot serve another task's pool; two are sinkbench's own.
UNSEEN_CONNECTIONS = 10


@dataclass(frozen=True)
class Sample:
    """One reading of all probes; None could not be read.

    Attributes:
        seconds: on the sampler's clock, when `stored` was read; `in_topic` just after it.
        uncommitted: records that the connector's group has not committed; it commits every few seconds.
        cpu_seconds: of each service since it started, and of `CONTROLLER`; None has ended, missing was not read.
        troubles: what is wrong with services, by name.
        signs: further readings by name, as in SinkReading, also of tasks and the machine; missing was not read.
        silent: services that did not answer in time, and when each last answered, on the sampler's clock."""

    seconds: float
    stored: int | None
    uncommitted: int | None = None
    backends: int | None = None
    pool_clients: int | None = None
    pool_servers: int | None = None
    tasks_running: int | None = None
    tasks_failed: int | None = None
    cpu_seconds: Mapping[str, float | None] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    troubles: Mapping[str, str] = field(default_factory=dict)
    signs: Mapping[str, float] = field(default_factory=dict)
    in_topic: int | None = None
    silent: Mapping[str, float] = field(default_factory=dict)

    def row(self) -> dict[str, float | int | str | None]:
        """A flat row for the samples' CSV, with a column for the CPU seconds of each service."""
        return {
            **{name: value for name, value in vars(self).items() if name not in NOT_FLAT},
            "seconds": round(self.seconds, 4),
            **{f"cpu_seconds_{name}": None if cpu is None else round(cpu, 3) for name, cpu in self.cpu_seconds.items()},
            **{name: round(value, 4) for name, value in self.signs.items()},
            "problems": "; ".join([*self.problems, *(f"{name} {text}" for name, text in self.troubles.items())])
            or None,
        }


def stored_counts(samples: Sequence[Sample]) -> tuple[list[float], list[float]]:
    """The samples' times, and the records in the sink; NaN could not be read."""
    times = [sample.seconds for sample in samples]
    return times, [np.nan if sample.stored is None else float(sample.stored) for sample in samples]


def window_seconds(samples: Sequence[Sample], records: int) -> float | None:
    """Seconds from the first record stored to the last; None if not all were stored. Both ends are sampled."""
    times, counts = progress(*stored_counts(samples))
    if counts.size == 0 or counts[-1] < records:
        return None
    first = int(np.searchsorted(counts, 0, side="right"))
    last = int(np.searchsorted(counts, records, side="left"))
    return float(times[last] - times[max(first - 1, 0)])


def used_up(samples: Sequence[Sample], connection_limit: int | None) -> int | None:
    """The most database connections at once if nearly its limit, else None. A few connections are never seen:
    sinkbench's own, refused ones, and a rest too small for another task."""
    peak = most(sample.backends for sample in samples) or 0
    return peak if connection_limit is not None and peak >= connection_limit - UNSEEN_CONNECTIONS else None


def connection_peaks(samples: Sequence[Sample]) -> tuple[int | None, int | None]:
    """The most connections at once of clients, and of the database, without those open before the connector. In a
    shared pooler the server connections cannot be attributed: None."""
    clients = most(own_count(sample.pool_clients, sample.signs, OTHER_POOL_CLIENTS) for sample in samples)
    if clients:
        shared = any(sample.signs.get(OTHER_POOL_CLIENTS) for sample in samples)
        return clients, None if shared else most(sample.pool_servers for sample in samples)
    backends = most(own_count(sample.backends, sample.signs, OTHER_CONNECTIONS) for sample in samples)
    return backends, backends


def own_count(counted: int | None, signs: Mapping[str, float], others: str) -> int | None:
    """A count without that of other users, which is the sign named `others`; None if not read."""
    return None if counted is None else max(counted - round(signs.get(others, 0)), 0)


def rejected_writes(samples: Sequence[Sample], sign: str | None) -> int:
    """Writes that the sink rejected, by the sign of that name; 0 if it does not count them."""
    counts = [count for sample in samples if (count := sample.signs.get(sign or "")) is not None]
    # The count is reset when its node restarts.
    return max(0, round(counts[-1] - counts[0])) if counts else 0


def by_service(values: Iterable[tuple[str, float | None]]) -> dict[str, float | None]:
    """The sum over each service's nodes; None with an unreadable process, since a part would look like the whole."""
    sums: dict[str, float | None] = {}
    for name, value in values:
        service = service_of(name)
        before = sums.get(service, 0.0)
        sums[service] = None if value is None or before is None else before + value
    return sums


def middle(samples: Sequence[Sample], records: int) -> tuple[float, float] | None:
    """When 10 % and 90 % of a drain of `records` were stored, on the samples' clock; None if it did not reach 90 %."""
    times, counts = progress(*stored_counts(samples))
    if counts.size == 0 or counts[-1] < HIGH_SHARE * records:
        return None
    start, end = np.interp([LOW_SHARE * records, HIGH_SHARE * records], counts, times)
    return float(start), float(end)


def cpu_seconds_per_million(samples: Sequence[Sample], records: int) -> dict[str, float | None]:
    """CPU seconds per million records by service over the `middle` of a drain; empty if it did not reach 90 %."""
    if (window := middle(samples, records)) is None:
        return {}
    used = by_service(cpu_between(samples, *window).items())
    return {name: per_million(seconds, records) for name, seconds in used.items()}


def node_cpu_ratio(samples: Sequence[Sample], records: int) -> dict[str, float]:
    """The CPU time of the busiest node of each service by that of its least busy one, in the `middle` of a drain."""
    window, nodes = middle(samples, records), dict[str, list[float]]()
    for name, seconds in ({} if window is None else cpu_between(samples, *window)).items():
        nodes.setdefault(service_of(name), []).append(seconds or 0.0)
    return {name: round(max(used) / min(used), 3) for name, used in nodes.items() if len(used) > 1 and min(used) > 0}


def monitoring_overhead_cores(samples: Sequence[Sample], records: int) -> float | None:
    """Cores used by the controller and the workers' metrics in the `middle` of a drain; without the sink's counting."""
    if (window := middle(samples, records)) is None:
        return None
    own = cpu_between(samples, *window).get(CONTROLLER)
    metrics = risen(samples, "connect_monitoring_cpu_seconds_total", *window)
    spent = [used for used in (own, metrics) if used is not None]
    return sum(spent) / (window[1] - window[0]) if spent else None


def foreign_cores(samples: Sequence[Sample], records: int) -> tuple[float, float] | None:
    """Cores used outside the stack in the `middle` of a drain, and the stolen ones among them; None if unknown."""
    if (window := middle(samples, records)) is None:
        return None
    busy, stolen = (risen(samples, sign, *window) for sign in (MACHINE, STOLEN))
    services = list(cpu_between(samples, *window).values())
    if busy is None or stolen is None or None in services:
        return None
    seconds = window[1] - window[0]
    return max(busy - sum(used for used in services if used is not None), stolen) / seconds, stolen / seconds


def per_million(seconds: float | None, records: int) -> float | None:
    """An amount used in the `middle` of a drain of `records`, per million of them."""
    return None if seconds is None else round(seconds / ((HIGH_SHARE - LOW_SHARE) * records / 1e6), 3)


def cpu_between(samples: Sequence[Sample], start: float, end: float) -> dict[str, float | None]:
    """CPU seconds of each process between two times of the samples' clock; None could not be read."""
    names = dict.fromkeys(name for sample in samples for name in sample.cpu_seconds)
    return {
        name: used_between([(one.seconds, one.cpu_seconds.get(name)) for one in samples], start, end) for name in names
    }


def risen(samples: Sequence[Sample], sign: str, start: float, end: float) -> float | None:
    """The increase of a counter between two times of the samples' clock; None if it could not be read."""
    return used_between([(each.seconds, each.signs.get(sign)) for each in samples], start, end)


def used_between(counts: Iterable[tuple[float, float | None]], start: float, end: float) -> float | None:
    """The increase of a counter between two times, from (time, count) readings; None with fewer than two."""
    known = [(at, count) for at, count in counts if count is not None]
    if len(known) < 2:
        return None
    times, values = zip(*known, strict=True)
    first, last = np.interp([start, end], times, values)
    return float(last - first)


RESIDENT, HEAP = "_memory_bytes", "_heap_bytes"
"""Suffixes of signs after the service's name: resident memory of its processes, and used heap of its JVMs."""


def memory_peaks(samples: Sequence[Sample], path: Collection[str]) -> dict[str, Memory]:
    """The peak of each service in `path`, all workers as "connect"; what was never read is None or missing."""
    seen = {name for sample in samples for name in sample.signs}
    return {
        service: Memory(
            resident_bytes=most(each.signs.get(service + RESIDENT) for each in samples),
            heap_bytes=most(each.signs.get(service + HEAP) for each in samples),
        )
        for service in sorted(path)
        if not seen.isdisjoint((service + RESIDENT, service + HEAP))
    }


def total_memory_peak(samples: Sequence[Sample], path: Collection[str]) -> float | None:
    """The most bytes that the services in `path` used together at one moment; None if one could not be read."""
    there = {service_of(name) for each in samples for name in each.cpu_seconds} & set(path)
    wanted = [service + RESIDENT for service in sorted(there)]
    sums = [sum(each.signs[name] for name in wanted) for each in samples if all(name in each.signs for name in wanted)]
    return max(sums, default=None) if wanted else None


READ = "tasks_read_total"
"""The sign that counts the records that tasks have read."""
# Every connector has polls and aggregates in flight.
FAR_SHARE = 0.1
FAR_RECORDS = 50_000


def read_ahead(samples: Sequence[Sample]) -> int | None:
    """The most records at one moment that were read, every two seconds, and not stored; None if unknown."""
    ahead = [each.signs[READ] - each.stored for each in samples if READ in each.signs and each.stored is not None]
    return max(0, round(max(ahead))) if ahead else None


def is_far_ahead(ahead: int | None, records: int) -> bool:
    """Whether that is more than any connector has in flight: a tenth of the trial's `records`, and 50,000."""
    return ahead is not None and ahead > max(FAR_SHARE * records, FAR_RECORDS)


COMPILER, GC = "_compiler_cpu_seconds_total", "_gc_cpu_seconds_total"
"""Suffixes of signs after the service's name."""
# From JMX, for all workers together: elapsed time, which includes the CPU time. What is warm by that is warm.
_ELAPSED, _CPU = "connect_compilation_seconds_total", "connect_cpu_seconds_total"


def jvm_cpu_seconds(samples: Sequence[Sample], ending: str, start: float, end: float) -> dict[str, float]:
    """CPU seconds of each service's `COMPILER` or `GC` threads between two times, without unknown and reset ones."""
    names = dict.fromkeys(name for sample in samples for name in sample.signs if name.endswith(ending))
    found = {name.removesuffix(ending): _count(samples, name, start, end) for name in names}
    return {service: seconds for service, seconds in found.items() if seconds is not None}


def jvm_cpu_per_million(samples: Sequence[Sample], records: int) -> dict[str, JvmCpu]:
    """The CPU time of JIT and GC per million records, by service, in the `middle` of a drain of `records`."""
    if (window := middle(samples, records)) is None:
        return {}
    compiling, collecting = (jvm_cpu_seconds(samples, ending, *window) for ending in (COMPILER, GC))
    return {
        name: JvmCpu(compiler=per_million(seconds, records), gc=per_million(collecting.get(name), records))
        for name, seconds in compiling.items()
    }


def compiling_share(samples: Sequence[Sample], start: float, end: float) -> float | None:
    """The share of compilation in the CPU time of all services, at most 1; None if unknown. With the workers' JMX
    only, it is the share of the workers' CPU time, which is no less; elapsed time may exceed CPU time."""

    def until(ending: str) -> float:
        # Counters are read less often than a window lasts, and would appear constant beyond the last reading.
        read_at = [each.seconds for each in samples if any(name.endswith(ending) for name in each.signs)]
        return min(end, read_at[-1]) if read_at else end

    compiling = jvm_cpu_seconds(samples, COMPILER, start, until(COMPILER))
    services = cpu_between(samples, start, until(COMPILER)).items()
    used = sum(seconds for name, seconds in services if name != CONTROLLER and seconds is not None)
    spent, elapsed = sum(compiling.values()), _count(samples, _ELAPSED, start, until(_ELAPSED))
    # Of other services' threads alone it would be too low.
    if elapsed is not None and (used <= 0 or "connect" not in compiling):
        spent, used = elapsed, _count(samples, _CPU, start, until(_ELAPSED)) or 0.0
    elif not compiling:
        return None
    return None if used <= 0 else min(spent / used, 1.0)


def _count(samples: Sequence[Sample], sign: str, start: float, end: float) -> float | None:
    """As `risen`; None if the count was reset by a restarted process."""
    found = risen(samples, sign, start, end)
    return None if found is None or found < 0 else found
