"""The TCP proxy that stands between workers and a sink: toxiproxy, built by Go once, and a child of this process."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.services.toxiproxy import Toxiproxy
from sinkbench.stack import Say
from sinkbench.stack.tools import find_go, find_program, run

__all__ = ["check_proxy", "ensure_proxy", "running_proxy"]

PROGRAM = "github.com/Shopify/toxiproxy/v2/cmd/server"
HOST = "127.0.0.1"
START_SECONDS = 15.0
END_SECONDS = 5.0
POLL_SECONDS = 0.05


def _program(checkout: Path, dist: Path) -> Path:
    """Where the program is, or will be: its name changes with the versions that it is built of."""
    pinned = b"".join((checkout / "toxiproxy" / name).read_bytes() for name in ("go.mod", "go.sum"))
    return dist / f"toxiproxy-{hashlib.sha256(pinned).hexdigest()[:12]}"


def check_proxy(checkout: Path, dist: Path) -> None:
    """Makes sure that the proxy is built, or can be, and that it can be started. Raises StackError: what is missing."""
    find_program("setpriv", "util-linux")
    if not _program(checkout, dist).exists():
        find_go()


def ensure_proxy(checkout: Path, dist: Path, say: Say) -> Path:
    """Has Go build the proxy into `dist`, as `toxiproxy/go.mod` names it, if it is missing. Raises StackError."""
    program = _program(checkout, dist)
    if not program.exists():
        go = find_go()
        dist.mkdir(parents=True, exist_ok=True)
        say("building toxiproxy with Go")
        # A build at the same time must find all of it, or nothing.
        building = program.with_name(f"{program.name}.{os.getpid()}")
        build = ("build", "-mod=readonly", "-trimpath", "-o", str(building), PROGRAM)
        done = run([str(go), "-C", str(checkout / "toxiproxy"), *build], {**os.environ, "CGO_ENABLED": "0"})
        if done.returncode != 0:
            building.unlink(missing_ok=True)
            lines = done.stderr.splitlines()
            said = [line for line in lines if line.strip() and not line.startswith("go: downloading")]
            raise StackError(f"Go could not build toxiproxy: {(said or ['no message'])[0].strip()}")
        building.replace(program)
    return program


@contextmanager
def running_proxy(program: Path, logs: Path, environment: Mapping[str, str], listen: str = HOST) -> Iterator[Toxiproxy]:
    """Runs the proxy as long as the context lasts, and not longer than this process.

    Args:
        program: what `ensure_proxy` has built.
        logs: the folder of its log.
        environment: what else is in its environment.
        listen: the address of this machine at which workers reach it.

    Raises:
        StackError: it does not start, or that address is none of this machine's.
    """
    _check_own(listen)
    port, setpriv = _free_port(), str(find_program("setpriv", "util-linux"))
    log = logs / "toxiproxy.log"
    logs.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            # The kernel ends it when the controller is killed.
            [setpriv, "--pdeathsig", "KILL", str(program), "-host", HOST, "-port", str(port)],
            env={"PATH": os.environ.get("PATH", os.defpath), "LOG_LEVEL": "info", **environment},
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
    """Raises StackError unless this machine can listen there."""
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise StackError(
                f"no proxy can listen on {host}, where the containers would reach it: {error.strerror}. Does the engine"
                " run in a virtual machine? Then race on the stack local"
            ) from None


def _free_port() -> int:
    """A free port of loopback."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
