"""The TCP proxy between workers and a sink: toxiproxy, built once with Go, run as a child of this process."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.services.toxiproxy import Toxiproxy
from sinkbench.settings import HOST
from sinkbench.stack import ProxyTarget, Say
from sinkbench.stack.tools import find_go, find_program, run

PROGRAM = "github.com/Shopify/toxiproxy/v2/cmd/server"
START_SECONDS, END_SECONDS, POLL_SECONDS = 15.0, 5.0, 0.05


@dataclass(frozen=True)
class BuiltProxies:
    """A proxy of this machine. `refusal` returns why none is possible, `listen` the address for the workers."""

    checkout: Path
    dist: Path
    logs: Path
    find: Callable[[], Mapping[str, ProxyTarget]]
    environment: Mapping[str, str]
    refusal: Callable[[], str | None] = lambda: None
    listen: Callable[[], str] = lambda: HOST

    @property
    def targets(self) -> Mapping[str, ProxyTarget]:
        return self.find()

    @property
    def _program(self) -> Path:
        """Its name changes with the pinned versions."""
        pinned = b"".join((self.checkout / "toxiproxy" / name).read_bytes() for name in ("go.mod", "go.sum"))
        return self.dist / f"toxiproxy-{hashlib.sha256(pinned).hexdigest()[:12]}"

    def check(self) -> None:
        if (refusal := self.refusal()) is not None:
            raise StackError(refusal)
        find_program("setpriv", "util-linux")
        if not self._program.exists():
            find_go()

    def prepare(self, say: Say) -> None:
        program = self._program
        if program.exists():
            return
        go = find_go()
        self.dist.mkdir(parents=True, exist_ok=True)
        say("building toxiproxy with Go")
        # A concurrent build must find a complete program or none.
        building = program.with_name(f"{program.name}.{os.getpid()}")
        build = ("build", "-mod=readonly", "-trimpath", "-o", str(building), PROGRAM)
        done = run([str(go), "-C", str(self.checkout / "toxiproxy"), *build], {**os.environ, "CGO_ENABLED": "0"})
        if done.returncode != 0:
            building.unlink(missing_ok=True)
            lines = done.stderr.splitlines()
            said = [line for line in lines if line.strip() and not line.startswith("go: downloading")]
            raise StackError(f"Go could not build toxiproxy: {(said or ['no message'])[0].strip()}")
        building.replace(program)

    @contextmanager
    def run(self) -> Iterator[Toxiproxy]:
        self.prepare(lambda line: None)
        listen = self.listen()
        _check_own(listen)
        port, setpriv = _free_port(), str(find_program("setpriv", "util-linux"))
        log = self.logs / "toxiproxy.log"
        self.logs.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                # The kernel ends it when the controller is killed.
                [setpriv, "--pdeathsig", "KILL", str(self._program), "-host", HOST, "-port", str(port)],
                env={"PATH": os.environ.get("PATH", os.defpath), "LOG_LEVEL": "info", **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C is for the controller, which ends its proxy itself.
                start_new_session=True,
            )
        try:
            with Toxiproxy(f"{HOST}:{port}", listen) as proxy:
                deadline = time.monotonic() + START_SECONDS
                while not proxy.answers():
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise StackError(f"toxiproxy did not start; {log} says why")
                    time.sleep(POLL_SECONDS)
                yield proxy
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _check_own(host: str) -> None:
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise StackError(
                f"no proxy can listen on {host}, where the containers would reach it: {error.strerror}. Does the engine"
                " run in a virtual machine? Then race on the stack local"
            ) from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
