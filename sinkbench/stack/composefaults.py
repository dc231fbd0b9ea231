"""What can be done to single services in containers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.services.toxiproxy import Toxiproxy
from sinkbench.settings import Settings
from sinkbench.stack import Isolation, Promotion, Proxies, ProxyTarget, Say
from sinkbench.stack.engine import Container, DockerEngine
from sinkbench.stack.proxyserver import check_proxy, ensure_proxy, running_proxy

__all__ = ["ComposeFaults", "ComposeProxies"]


@dataclass(frozen=True)
class ComposeFaults:
    """Signals, pauses, and networks that the engine takes away and gives back.

    Attributes:
        engine: the engine.
        container: finds the container of a service. Raises StackError if there is none.
        wait: waits until services are well. Raises StackError.
        proxies: None inside a container.
    """

    engine: DockerEngine
    container: Callable[[str], Container]
    wait: Callable[[Sequence[str]], None]
    proxies: Proxies | None
    small_disks: None = None

    def kill(self, service: str) -> None:
        self.engine.kill(self.container(service))

    def stop(self, service: str) -> None:
        self.engine.stop(self.container(service))

    def start(self, service: str) -> None:
        self.engine.start(self.container(service))
        self.wait([service])

    def freeze(self, service: str) -> None:
        self.engine.pause(self.container(service))

    def thaw(self, service: str) -> None:
        self.engine.unpause(self.container(service))
        self.wait([service])

    @property
    def isolation(self) -> Isolation:
        return self

    def isolate(self, service: str) -> None:
        self.engine.disconnect(self.container(service))

    def rejoin(self, service: str) -> None:
        self.engine.reconnect(self.container(service))
        self.wait([service])

    def promotion(self, sink: str) -> Promotion | None:
        return None


@dataclass(frozen=True)
class ComposeProxies:
    """A proxy on the engine's machine, which listens where containers reach that."""

    settings: Settings
    checkout: Path
    engine: DockerEngine
    targets: Mapping[str, ProxyTarget]

    def check(self) -> None:
        if self.settings.security == "on":
            raise StackError(
                "SINKBENCH_SECURITY=on: in containers no proxy can stand before a sink, whose certificate is for none;"
                " race on the stack local, or leave it out"
            )
        check_proxy(self.checkout, self.settings.dist)

    def prepare(self, say: Say) -> None:
        ensure_proxy(self.checkout, self.settings.dist, say)

    def run(self) -> AbstractContextManager[Toxiproxy]:
        program = ensure_proxy(self.checkout, self.settings.dist, lambda line: None)
        return running_proxy(program, self.settings.home / "log", {}, self.engine.gateway())
