"""Faults of single containers: kill, freeze, remove from the network, or put behind a proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sinkbench.stack.assembly import proxy_targets
from sinkbench.stack.protocol import Faults, Isolation, Proxies
from sinkbench.stack.proxyserver import BuiltProxies

if TYPE_CHECKING:
    from sinkbench.stack.compose import ComposeStack


class ContainerFaults(Faults, Isolation):
    def __init__(self, stack: ComposeStack) -> None:
        self._stack = stack

    def undo(self) -> None:
        """Resumes frozen containers and reconnects networks after a killed controller."""
        for container in self._stack.engine.containers():
            if container.state == "paused":
                self._stack.engine.act("unpause", container)
            if container.isolated:
                self._stack.engine.reconnect(container)

    def kill(self, service: str) -> None:
        self._act("kill", service)

    def stop(self, service: str) -> None:
        self._act("stop", service)

    def start(self, service: str) -> None:
        self._act("start", service)
        self._stack.wait_until_ready([service])

    def freeze(self, service: str) -> None:
        self._act("pause", service)

    def thaw(self, service: str) -> None:
        self._act("unpause", service)
        self._stack.wait_until_ready([service])

    def _act(self, what: str, service: str) -> None:
        self._stack.engine.act(what, self._stack.container(service))

    @property
    def isolation(self) -> Isolation:
        return self

    def isolate(self, service: str) -> None:
        self._stack.engine.disconnect(self._stack.container(service))

    def rejoin(self, service: str) -> None:
        self._stack.engine.reconnect(self._stack.container(service))
        self._stack.wait_until_ready([service])

    @property
    def proxies(self) -> Proxies | None:
        # The project's containers have neither Go nor a built proxy.
        if self._stack.inside:
            return None
        settings = self._stack.settings
        return BuiltProxies(
            self._stack.checkout,
            settings.dist,
            settings.home / "log",
            lambda: proxy_targets(self._stack.reach().place),
            {},
            self._no_proxy,
            lambda: self._stack.engine.gateway(),
        )

    def _no_proxy(self) -> str | None:
        if self._stack.settings.security == "on" or any(each.secured for each in self._stack.named().values()):
            return (
                "the containers are secured: no proxy can stand before a sink, whose certificate is not for its"
                " address; race on the stack local, or without SINKBENCH_SECURITY"
            )
        return None

    def small_disks(self, sink: str) -> None:
        return None

    def promotion(self, sink: str) -> None:
        return None
