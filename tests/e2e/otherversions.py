"""Services of other versions than the stack's own, as Maven has them, started by the stack's own run scripts."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from psycopg.conninfo import make_conninfo

from sinkbench.settings import CHECKOUT, Settings
from sinkbench.sinks.elasticsearch.service import SERVICE as ELASTICSEARCH
from sinkbench.sinks.postgres.service import POSTGRES
from sinkbench.stack import Endpoint
from sinkbench.stack.tools import find_java, find_program, run
from tests.support.ports import free_ports

__all__ = ["elasticsearch", "other_versions", "postgres"]

POM = CHECKOUT / "tests" / "e2e" / "versions" / "pom.xml"
READY_SECONDS = 90.0
END_SECONDS = 30.0
PASSWORD = "of-another-version"  # noqa: S105


def other_versions(settings: Settings) -> Path:
    """The folder of what `versions/pom.xml` lists; Maven fetches it if that has changed since the last time."""
    dist = settings.dist.with_name("other-versions")
    stamp = dist / "complete"
    if stamp.exists() and stamp.read_bytes() == POM.read_bytes():
        return dist
    shutil.rmtree(dist, ignore_errors=True)
    arch = {"x86_64": "amd64", "aarch64": "arm64v8"}[platform.machine()]
    command = [
        str(find_program("mvn", "maven")),
        "-q",
        "-B",
        "-f",
        str(POM),
        "package",
        f"-Ddist={dist}",
        f"-Darch={arch}",
    ]
    done = run(command, {**os.environ, "JAVA_HOME": str(find_java())})
    assert done.returncode == 0, done.stdout + done.stderr
    for packed in dist.glob("postgres-*/*.txz"):
        subprocess.run(["bsdtar", "-xf", packed.name], cwd=packed.parent, check=True)
        packed.unlink()
    # The services run under another account.
    subprocess.run(["chmod", "-R", "a+rX", str(dist)], check=True)
    shutil.copy(POM, stamp)
    return dist


@contextlib.contextmanager
def elasticsearch(settings: Settings) -> Iterator[Endpoint]:
    """The other Elasticsearch, ready."""
    (home,) = other_versions(settings).glob("elasticsearch-*")
    port, transport = free_ports(2)
    environment = {
        "ELASTICSEARCH_HOME": str(home),
        "ELASTICSEARCH_LISTEN": "127.0.0.1",
        "ELASTICSEARCH_PORT": str(port),
        "ELASTICSEARCH_TRANSPORT_PORT": str(transport),
        "ELASTICSEARCH_HEAP": "512m",
        "JAVA_OPTIONS": settings.java_options,
        # The oldest that it runs on, if it is here.
        "JAVA_HOME": str(next(Path("/usr/lib/jvm").glob("java-17-openjdk-*"), find_java())),
    }
    endpoint = Endpoint(f"http://127.0.0.1:{port}", options={"index": "tides"})
    with _started("elasticsearch", environment, settings, lambda: ELASTICSEARCH.ready(endpoint, True, 2.0)):
        yield endpoint


@contextlib.contextmanager
def postgres(settings: Settings, version: int) -> Iterator[Endpoint]:
    """PostgreSQL of that version, ready."""
    (port,) = free_ports(1)
    environment = {
        "POSTGRES_BIN": str(other_versions(settings) / f"postgres-{version}" / "bin"),
        "POSTGRES_LISTEN": "127.0.0.1",
        "POSTGRES_PORT": str(port),
        "POSTGRES_DB": "bench",
        "POSTGRES_USER": "bench",
        "POSTGRES_PASSWORD": PASSWORD,
    }
    where = make_conninfo(host="127.0.0.1", port=port, dbname="bench", user="bench")
    endpoint = Endpoint(make_conninfo(where, password=PASSWORD), where)
    with _started("postgres", environment, settings, lambda: POSTGRES.ready(endpoint, True, 2.0)):
        yield endpoint


@contextlib.contextmanager
def _started(
    service: str, environment: Mapping[str, str], settings: Settings, problem: Callable[[], str | None]
) -> Iterator[None]:
    """Runs the service's script with a data folder of its own; as root under the account of the stack's services."""
    as_account: dict[str, Any] = {"user": settings.user, "group": settings.user} if os.geteuid() == 0 else {}
    # No folder of pytest's own, which other accounts cannot enter.
    folder = Path(tempfile.mkdtemp(prefix=f"{service}-", dir=settings.home))
    try:
        if as_account:
            shutil.chown(folder, settings.user)
        data = {f"{service.upper()}_DATA": str(folder / "data"), "HOME": str(folder)}
        with (folder / "log").open("w+") as log:
            process = subprocess.Popen(
                [CHECKOUT / service / "run"],
                stdout=log,
                stderr=log,
                cwd=folder,
                env={**os.environ, **environment, **data},
                start_new_session=True,
                **as_account,
            )
            try:
                deadline = time.monotonic() + READY_SECONDS
                while (found := problem()) is not None:
                    assert process.poll() is None, (folder / "log").read_text()[-4000:]
                    assert time.monotonic() < deadline, f"{found}\n{(folder / 'log').read_text()[-4000:]}"
                    time.sleep(0.2)
                yield
            finally:
                # With all that it has started. At SIGTERM PostgreSQL would wait for its clients; Java hears no SIGINT
                # where tests run in the background of a shell.
                ends = signal.SIGINT if service == "postgres" else signal.SIGTERM
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, ends)
                process.wait(END_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
