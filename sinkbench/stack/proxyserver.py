"""The TCP proxy between workers and a sink: toxiproxy, built with Go, run as a child of this process; its client."""

import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx

from sinkbench.errors import ServiceError, StackError
from sinkbench.services.access import Access
from sinkbench.services.http import http_client, http_errors
from sinkbench.settings import HOST, Settings
from sinkbench.stack import ProxyTarget, Say
from sinkbench.stack.tools import find_program, run

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


@dataclass(frozen=True)
class Toxiproxy:
    """One server at `url`, with proxies that listen on the host `listen`. Its methods may raise ServiceError."""

    http: httpx.Client
    url: str
    listen: str

    def answers(self) -> bool:
        try:
            self._ask("GET", "/version")
        except ServiceError:
            return False
        return True

    def stand_before(self, name: str, upstream: str) -> tuple[str, int]:
        """Adds a proxy for a server at host:port. Returns the host and port on which it listens."""
        told = {"name": name, "listen": f"{self.listen}:{ANY_PORT}", "upstream": upstream, "enabled": True}
        host, _, port = str(self._ask("POST", "/proxies", told).json()["listen"]).rpartition(":")
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
            answer = self.http.request(method, f"{self.url}{path}", json=body)
        if not answer.is_success:
            raise ServiceError(f"toxiproxy: {method} {path}: {answer.status_code} {answer.text.strip()}")
        return answer


PROGRAM = "github.com/Shopify/toxiproxy/v2/cmd/server"
START_SECONDS, POLL_SECONDS = 15.0, 0.05


@dataclass(frozen=True)
class Proxies:
    """A proxy of this machine. `find` returns the services of the sinks by name, which it can stand before; `allowed`
    raises StackError if none is possible, and asks no service; `listen` returns the address for the workers."""

    checkout: Path
    settings: Settings
    find: Callable[[], Mapping[str, ProxyTarget]]
    allowed: Callable[[], None] = lambda: None
    listen: Callable[[], str] = lambda: HOST
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def targets(self) -> Mapping[str, ProxyTarget]:
        return self.find()

    @property
    def _program(self) -> Path:
        """Its name changes with the pinned versions."""
        pinned = b"".join((self.checkout / "toxiproxy" / name).read_bytes() for name in ("go.mod", "go.sum"))
        return self.settings.dist / f"toxiproxy-{hashlib.sha256(pinned).hexdigest()[:12]}"

    def check(self) -> None:
        """Raises StackError if the proxy cannot be built; asks no service."""
        self.allowed()
        find_program("setpriv", "util-linux")
        if not self._program.exists():
            find_program("go", "golang-go")

    def prepare(self, say: Say) -> None:
        """Builds the proxy unless it exists. Raises StackError if that fails."""
        program = self._program
        if program.exists():
            return
        go = find_program("go", "golang-go")
        program.parent.mkdir(parents=True, exist_ok=True)
        say("building toxiproxy with Go")
        # A concurrent build must find a complete program or none.
        building = program.with_name(f"{program.name}.{os.getpid()}")
        build = ("build", "-mod=readonly", "-trimpath", "-o", str(building), PROGRAM)
        done = run([str(go), "-C", str(self.checkout / "toxiproxy"), *build], {**os.environ, "CGO_ENABLED": "0"})
        if done.returncode != 0:
            building.unlink(missing_ok=True)
            said = [line for line in done.stderr.splitlines() if line.strip() and "go: downloading" not in line]
            raise StackError(f"Go could not build toxiproxy: {(said or ['no message'])[0].strip()}")
        building.replace(program)

    @contextmanager
    def run(self) -> Iterator[Toxiproxy]:
        """Runs it until the context or this process ends. Raises StackError."""
        self.prepare(lambda line: None)
        listen = self.listen()
        try:
            _free_port(listen)
        except OSError as error:
            raise StackError(
                f"no proxy can listen on {listen}, where the workers would reach it: {error.strerror}; race on the"
                " stack local"
            ) from None
        port = _free_port(HOST)
        log = self.settings.home / "log" / "toxiproxy.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [str(self._program), "-host", HOST, "-port", str(port)]
        with log.open("ab") as output:
            process = subprocess.Popen(
                # The kernel ends it when the controller is killed.
                [str(find_program("setpriv", "util-linux")), "--pdeathsig", "KILL", *command],
                env={"PATH": os.environ.get("PATH", os.defpath), "LOG_LEVEL": "info", **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C is for the controller, which ends its proxy itself.
                start_new_session=True,
            )
        try:
            with http_client(Access(), TIMEOUT_SECONDS) as client:
                proxy = Toxiproxy(client, f"http://{HOST}:{port}", listen)
                deadline = time.monotonic() + START_SECONDS
                while not proxy.answers():
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise StackError(f"toxiproxy did not start; {log} says why")
                    time.sleep(POLL_SECONDS)
                yield proxy
        finally:
            process.kill()
            process.wait()


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
