"""A client of toxiproxy, a TCP proxy that injects faults ("toxics")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import httpx

from sinkbench.errors import ServiceError
from sinkbench.services.access import Access
from sinkbench.services.http import http_client, http_errors

TIMEOUT_SECONDS = 10.0
# toxiproxy chooses a free port, and keeps it while it refuses connections.
ANY_PORT = 0


@dataclass(frozen=True)
class Toxic:
    """A fault of all connections of a proxy; `stream` is upstream for what clients send, downstream for the answers."""

    type: str
    stream: Literal["upstream", "downstream"]
    attributes: Mapping[str, int]

    @property
    def name(self) -> str:
        return f"{self.type}_{self.stream}"


class Toxiproxy:
    """One server with any number of proxies. Its methods raise ServiceError if it does not answer, or refuses."""

    def __init__(self, address: str, listen: str = "127.0.0.1") -> None:
        """`address` is host:port of the server; its proxies listen on the host `listen`."""
        self._url = f"http://{address}"
        self._listen = listen
        self._http = http_client(Access(), TIMEOUT_SECONDS)

    def __enter__(self) -> Toxiproxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def answers(self) -> bool:
        try:
            self._ask("GET", "/version")
        except ServiceError:
            return False
        return True

    def stand_before(self, name: str, upstream: str) -> tuple[str, int]:
        """Adds a proxy for a server at host:port. Returns the host and port on which it listens."""
        listen = f"{self._listen}:{ANY_PORT}"
        made = self._ask("POST", "/proxies", {"name": name, "listen": listen, "upstream": upstream, "enabled": True})
        host, _, port = str(made.json()["listen"]).rpartition(":")
        return host, int(port)

    def add(self, proxy: str, toxic: Toxic) -> None:
        """Starts a fault, also for open connections."""
        told = {"name": toxic.name, "type": toxic.type, "stream": toxic.stream, "attributes": dict(toxic.attributes)}
        self._ask("POST", f"/proxies/{proxy}/toxics", told)

    def remove(self, proxy: str, toxic: Toxic) -> None:
        """Ends a fault. The end of a timeout closes its connections, since it has dropped their data."""
        self._ask("DELETE", f"/proxies/{proxy}/toxics/{toxic.name}")

    def enable(self, proxy: str, enabled: bool) -> None:
        """If disabled, the proxy closes its connections and refuses new ones."""
        self._ask("POST", f"/proxies/{proxy}", {"enabled": enabled})

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        with http_errors():
            answer = self._http.request(method, f"{self._url}{path}", json=body)
        if not answer.is_success:
            raise ServiceError(f"toxiproxy: {method} {path}: {answer.status_code} {answer.text.strip()}")
        return answer
