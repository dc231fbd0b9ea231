"""The interface of a workload, and what faults need around a trial: a proxy, and a disk that can be filled."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import psutil

from sinkbench.errors import ReasonCode, TrialFailed
from sinkbench.plan.faults import CUT, DELAY, PlanFault
from sinkbench.results import Reason
from sinkbench.sinks import SMALL_DISK, ArrivalWatch, FullDisk, needed, sink_kind
from sinkbench.stack import ProxyTarget
from sinkbench.stack.proxyserver import Toxic, Toxiproxy
from sinkbench.stack.smalldisk import SmallDisk
from sinkbench.trial.cluster import VARIABLE
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import After, Loaded, Measured, Timeline


@dataclass(frozen=True)
class Network:
    """The connections of a trial's connector to these services of its sink, through a proxy."""

    proxy: Toxiproxy
    services: Sequence[str]

    @contextmanager
    def broken(self, fault: PlanFault) -> Iterator[None]:
        toxics = toxics_of(fault)
        with ExitStack() as undoing:
            for service in self.services:
                if fault.what == CUT and not toxics:
                    self.proxy.enable(service, False)
                    undoing.callback(self.proxy.enable, service, True)
                for toxic in toxics:
                    self.proxy.add(service, toxic)
                    undoing.callback(self.proxy.remove, service, toxic)
            yield


@contextmanager
def proxied_network(own: Resources) -> Iterator[Network]:
    """Routes the connector to its sink through a proxy, within the context. Probes and audit connect directly."""
    proxies = needed(needed(own.cluster.stack.faults, "faults").proxies, "proxies")
    used = proxy_targets_used(own.cluster.file_of(own.cell), own.cell.sink, proxies.targets)
    with proxies.run() as proxy:
        found: dict[str, str] = {}
        for service, proxy_target in used.items():
            found |= proxy_target.at(*proxy.stand_before(service, f"{proxy_target.host}:{proxy_target.port}"))
        before, own.variables = own.variables, {**own.variables, **found}
        try:
            yield Network(proxy, list(used))
        finally:
            own.variables = before


def proxy_targets_used(
    config: Mapping[str, object], sink: str, proxy_targets: Mapping[str, ProxyTarget]
) -> dict[str, ProxyTarget]:
    """Returns those of a sink's services whose address the connector's configuration takes from variables."""
    named = {name for value in config.values() for name in VARIABLE.findall(str(value))}
    services = [each.name for each in sink_kind(sink).services if each.name in proxy_targets]
    return {name: proxy_targets[name] for name in services if proxy_targets[name].variables.keys() <= named}


WAYS: tuple[Literal["upstream"], Literal["downstream"]] = ("upstream", "downstream")


def toxics_of(fault: PlanFault) -> list[Toxic]:
    """Returns the fault as toxiproxy's toxics, in both directions; none if it refuses connections."""
    if fault.what == CUT:
        # 0: the connections stay open.
        return [Toxic("timeout", way, {"timeout": 0}) for way in WAYS if fault.drops]
    if fault.what == DELAY:
        # Toxiproxy takes whole milliseconds, so half a millisecond each way becomes one way and none back.
        both = round(2 * fault.delay_ms)
        delays = {way: (both + (way == "upstream")) // 2 for way in WAYS}
        return [Toxic("latency", way, {"latency": delays[way]}) for way in WAYS if delays[way]]
    rate = {"rate": fault.most_bytes_per_second // 1000}
    return [Toxic("bandwidth", way, rate) for way in WAYS]


# Maximum space of a record with indexes and row headers, as a multiple of its size; and of an empty table.
TIMES, EMPTY_BYTES = 20, 256 * 2**20
# Usual multiple.
USUAL_TIMES = 3


@contextmanager
def disk_to_fill(own: Resources) -> Iterator[FullDisk]:
    """Moves the target to a disk that can be filled, and has room for all records, within the context.

    Raises TrialFailed if the disk does not fit the memory, and ServiceError if it cannot be created or removed."""
    cluster, records = own.cluster, own.records
    size = cluster.value_bytes(own.cell.form)
    load, free = records * size, psutil.virtual_memory().available
    if sink_kind(own.cell.sink).full_disk == SMALL_DISK and USUAL_TIMES * load > free / 2:
        raise TrialFailed(
            f"{records:,} records of {size:.0f} bytes do not fit a small disk, which lies in"
            f" memory: {free / 2**30:.1f} GiB are available; make sustain.seconds or the rate smaller",
            ReasonCode.DISK_TOO_SMALL,
        )

    def small() -> AbstractContextManager[SmallDisk]:
        disks = needed(needed(cluster.stack.faults, "faults").small_disks(own.cell.sink), "small_disks")
        return disks.mounted(round(TIMES * load) + EMPTY_BYTES)

    with closing(cluster.another_sink(own.cell.sink)) as sink:
        filled = needed(sink.capabilities.disk_to_fill, "disk_to_fill")
        with filled.disk(own.names.target, small) as disk:
            yield disk


Figures = Mapping[str, Any]
"""What a workload measures: fields of TrialRecord by name. Its `reasons` and `notes` are added to the trial's."""


@dataclass(frozen=True)
class Around:
    """What a workload needs from before the load until after the audit.

    `clock_ms` is the wall clock minus the monotonic clock; faults use `network` and `disk`."""

    arriving: ArrivalWatch | None = None
    clock_ms: float = 0.0
    network: Network | None = None
    disk: FullDisk | None = None


class Workload(ABC):
    """One kind of trial. Its methods are called in this order, each with the results of the steps before."""

    def around(self, own: Resources) -> AbstractContextManager[Around]:
        """Returns the context from before the load until after the audit. May raise TrialFailed or ServiceError."""
        return nullcontext(Around())

    @abstractmethod
    def load(self, own: Resources) -> Loaded | None:
        """Loads the topic; None if records come later. May raise TrialFailed or ServiceError."""

    @abstractmethod
    def run(self, own: Resources, around: Around, loaded: Loaded | None) -> Timeline:
        """Runs the connector. An error that ends the run early is in the result."""

    def read(self, own: Resources, around: Around, found: Measured) -> After:
        """Reads after the audit what only this workload needs. May raise ServiceError."""
        return After()

    @abstractmethod
    def figures(self, found: Measured, reasons: list[Reason]) -> Figures:
        """Returns the figures of the trial, given the reasons so far."""
