"""Services of a secured stack whose certificate has expired, really: of its own authority, for the right names."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from sinkbench.stack.certificates import Signed, issue, valid_until
from sinkbench.stack.home import Home
from sinkbench.stack.local import LocalStack
from sinkbench.stack.securing import LOCAL_NAMES
from sinkbench.stack.security import Security
from sinkbench.stack.securityfiles import files_of_processes
from sinkbench.stack.supervisor import Supervisor
from tests.support.servercert import POSTGRES, certificate_until

__all__ = ["Expiring", "expiring_certificates"]

DAY = timedelta(days=1)
FILES = ("node.pem", "node.key", "node.p12", "bundle.pem")
PORTS = {
    **{"connect-1": "connect_port", "kafka": "kafka_port", "elasticsearch": "elasticsearch_port"},
    **{"postgres": "postgres_port", "pgbouncer": "pgbouncer_port"},
}
# How long a certificate lasts that has to be valid when its service starts: on a busy machine that takes its time.
LAST_SECONDS = (15, 60, 180)
POLL_SECONDS = 0.2


class Expiring:
    """Starts services again with other certificates of the same authority."""

    def __init__(self, stack: LocalStack, security: Security) -> None:
        home = Home(stack.settings)
        self._stack = stack
        self._security = security
        self._supervisor = Supervisor(home.supervisor_config, home.socket)
        self._root = Signed(security.ca.read_bytes(), (security.folder / "ca.key").read_bytes())

    def long_ago(self, *services: str) -> None:
        """With one that has expired the day before. Kafka refuses to start with such a one."""
        until = self._certify(datetime.now(UTC) - 3 * DAY, 2 * DAY)
        for service in services:
            self.start_again(service)
        for service in services:
            assert self._shows(service, until), service

    def while_it_runs(self, service: str) -> None:
        """With one that expires some seconds later; returns when it has."""
        for seconds in LAST_SECONDS:
            until = self._certify(datetime.now(UTC), timedelta(seconds=seconds))
            self.start_again(service)
            if self._shows(service, until):
                break
        else:
            raise AssertionError(f"{service} does not start with a certificate that is valid for {seconds} s")
        while datetime.now(UTC) <= until:
            time.sleep(POLL_SECONDS)

    def start_again(self, service: str) -> None:
        """With the certificate that was written last; it need not get so far as to answer."""
        self._stack.faults.kill(service)
        # Not by the stack, which waits until the service has convinced it.
        self._supervisor.start(service)

    def runs(self, service: str) -> bool:
        """Whether it lives."""
        return any(each.name == service and each.state == "running" for each in self._stack.services())

    def kept(self) -> dict[str, bytes]:
        """The files that are written over."""
        return {name: (self._security.folder / name).read_bytes() for name in FILES}

    def restore(self, kept: dict[str, bytes]) -> None:
        """Starts all services again with these."""
        for name, content in kept.items():
            (self._security.folder / name).write_bytes(content)
        for state in self._stack.services():
            if state.state == "running":
                # One that cannot reach another would not stop for long.
                self._stack.faults.kill(state.name)
        self._stack.up(lambda line: None)

    def _certify(self, begins: datetime, lasts: timedelta) -> datetime:
        """Writes a certificate, in the files that are there: they keep their owner. Returns until when it is valid."""
        signed = issue(self._root, LOCAL_NAMES, begins, lasts)
        files = files_of_processes(self._security, signed, self._root.certificate)
        for name in FILES:
            (self._security.folder / name).write_bytes(files[name])
        return valid_until(signed.certificate)

    def _shows(self, service: str, until: datetime) -> bool:
        """Waits until a service shows the certificate that is valid until then; whether it lives to do so."""
        port = self._stack.settings.port(PORTS[service])
        request = POSTGRES if service in ("postgres", "pgbouncer") else b""
        give_up = time.monotonic() + 120
        while certificate_until("127.0.0.1", port, request) != until:
            if not self.runs(service):
                return False
            assert time.monotonic() < give_up, service
            time.sleep(POLL_SECONDS)
        return True


@contextlib.contextmanager
def expiring_certificates(stack: LocalStack, security: Security) -> Iterator[Expiring]:
    """What changes the certificates of a stack's services; afterwards they have their own again, and all run."""
    expiring = Expiring(stack, security)
    kept = expiring.kept()
    try:
        yield expiring
    finally:
        expiring.restore(kept)
