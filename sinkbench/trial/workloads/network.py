"""The network between the workers and the sink, with a proxy during one trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sinkbench.plan.faults import CUT, DELAY, PlanFault
from sinkbench.services.toxiproxy import Toxic, Toxiproxy
from sinkbench.sinks import needed, sink_kind
from sinkbench.stack import ProxyTarget
from sinkbench.trial.cluster import VARIABLE
from sinkbench.trial.resources import Resources


class Network:
    """The connections of a trial's connector to its sink, through a proxy."""

    def __init__(self, proxy: Toxiproxy, services: Sequence[str]) -> None:
        self._proxy = proxy
        self._services = services

    @property
    def target(self) -> str:
        return ", ".join(f"network to {name}" for name in self._services)

    @contextmanager
    def broken(self, fault: PlanFault) -> Iterator[None]:
        toxics = toxics_of(fault)
        refusing = fault.what == CUT and not toxics
        for service in self._services:
            if refusing:
                self._proxy.enable(service, False)
            for toxic in toxics:
                self._proxy.add(service, toxic)
        try:
            yield
        finally:
            for service in self._services:
                for toxic in toxics:
                    self._proxy.remove(service, toxic)
                if refusing:
                    self._proxy.enable(service, True)


@contextmanager
def proxied_network(own: Resources) -> Iterator[Network]:
    """Routes the connector to its sink through a proxy, within the context. Probes and audit connect directly."""
    proxies = needed(needed(own.cluster.stack.faults, "faults").proxies, "proxies")
    used = proxy_targets_used(own.cluster.file_of(own.cell), own.cell.sink, proxies.targets)
    with proxies.run() as proxy:
        found: dict[str, str] = {}
        for service, proxy_target in used.items():
            found |= proxy_target.at(*proxy.stand_before(service, f"{proxy_target.host}:{proxy_target.port}"))
        with own.overriding(found):
            yield Network(proxy, list(used))


def proxy_targets_used(
    config: Mapping[str, object], sink: str, proxy_targets: Mapping[str, ProxyTarget]
) -> dict[str, ProxyTarget]:
    """Returns those of a sink's services whose address the connector's configuration takes from variables."""
    named = {name for value in config.values() for name in VARIABLE.findall(str(value))}
    services = [each.name for each in sink_kind(sink).services if each.name in proxy_targets]
    return {name: proxy_targets[name] for name in services if proxy_targets[name].variables.keys() <= named}


def toxics_of(fault: PlanFault) -> list[Toxic]:
    """Returns the fault as toxiproxy's toxics, in both directions; none if it refuses connections."""
    if fault.what == CUT:
        if not fault.drops:
            return []
        # 0: the connections stay open.
        return [Toxic("timeout", "upstream", {"timeout": 0}), Toxic("timeout", "downstream", {"timeout": 0})]
    if fault.what == DELAY:
        # Toxiproxy takes whole milliseconds, so half a millisecond each way becomes one way and none back.
        both = round(2 * fault.delay_ms)
        up = (both + 1) // 2
        toxics = [Toxic("latency", "upstream", {"latency": up}), Toxic("latency", "downstream", {"latency": both - up})]
        return [each for each in toxics if each.attributes["latency"]]
    rate = {"rate": fault.most_bytes_per_second // 1000}
    return [Toxic("bandwidth", "upstream", rate), Toxic("bandwidth", "downstream", rate)]
