"""A client of toxiproxy, a TCP proxy with faults on purpose, which are called toxics there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import httpx

from sinkbench.errors import ServiceError
from sinkbench.services.access import Access
from sinkbench.services.http import http_client, http_errors

__all__ = ["Toxic", "Toxiproxy"]

TIMEOUT_SECONDS = 10.0
# The proxy itself chooses a port that is free, and keeps it while it refuses connections.
ANY_PORT = 0


@dataclass(frozen=True)
class Toxic:
    """A fault of all connections of a proxy, in one direction.

    Attributes:
        type: toxiproxy's word: latency, bandwidth, timeout.
        stream: upstream is what clients send, downstream what they are answered.
        attributes: its figures, by toxiproxy's names.
    """

    type: str
    stream: Literal["upstream", "downstream"]
    attributes: Mapping[str, int]

    @property
    def name(self) -> str:
        """What it is called in a proxy."""
        return f"{self.type}_{self.stream}"


class Toxiproxy:
    """One server with any number of proxies. Its methods raise ServiceError if it does not answer, or refuses."""

    def __init__(self, address: str, listen: str = "127.0.0.1") -> None:
        """`address` is its host and port. Its proxies listen on the host `listen`."""
        self._url = f"http://{address}"
        self._listen = listen
        self._http = http_client(Access(), TIMEOUT_SECONDS)

    def __enter__(self) -> Toxiproxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def answers(self) -> bool:
        """Whether it is ready."""
        try:
            self._ask("GET", "/version")
        except ServiceError:
            return False
        return True

    def stand_before(self, name: str, upstream: str) -> tuple[str, int]:
        """Adds a proxy for a server at host:port. Returns the host and the port that it listens on."""
        listen = f"{self._listen}:{ANY_PORT}"
        made = self._ask("POST", "/proxies", {"name": name, "listen": listen, "upstream": upstream, "enabled": True})
        host, _, port = str(made.json()["listen"]).rpartition(":")
        return host, int(port)

    def add(self, proxy: str, toxic: Toxic) -> None:
        """Begins a fault; connections that are open get it, too."""
        told = {"name": toxic.name, "type": toxic.type, "stream": toxic.stream, "attributes": dict(toxic.attributes)}
        self._ask("POST", f"/proxies/{proxy}/toxics", told)

    def remove(self, proxy: str, toxic: Toxic) -> None:
        """Ends a fault; a timeout closes its connections then, since it has swallowed what they carried."""
        self._ask("DELETE", f"/proxies/{proxy}/toxics/{toxic.name}")

    def enable(self, proxy: str, enabled: bool) -> None:
        """Whether the proxy listens; if not its connections are closed, and new ones refused."""
        self._ask("POST", f"/proxies/{proxy}", {"enabled": enabled})

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        with http_errors():
            answer = self._http.request(method, f"{self._url}{path}", json=body)
        if not answer.is_success:
            raise ServiceError(f"toxiproxy: {method} {path}: {answer.status_code} {answer.text.strip()}")
        return answer
