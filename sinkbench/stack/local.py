"""The driver of the local stack: its services are processes of this machine, under supervisord, on 127.0.0.1."""

from __future__ import annotations

import fcntl
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import psutil

from sinkbench.errors import StackError
from sinkbench.services.toxiproxy import Toxiproxy
from sinkbench.settings import CHECKOUT, Settings, existing_part
from sinkbench.stack import Endpoints, MachineCpu, ProxyTarget, Say, ServiceState, Stack
from sinkbench.stack.distributions import ensure_distributions
from sinkbench.stack.home import Home
from sinkbench.stack.jvmthreads import JvmClock
from sinkbench.stack.localendpoints import endpoints_of
from sinkbench.stack.memory import resident_bytes
from sinkbench.stack.nodes import HOST, check_memory, needs
from sinkbench.stack.plugins import jars_of
from sinkbench.stack.processes import (
    SERVICES_OF,
    CpuClock,
    check_ports_free,
    command_line,
    end_leftovers,
    is_suspended,
    machine_cpu,
    resume,
    suspend,
)
from sinkbench.stack.proxyserver import check_proxy, ensure_proxy, running_proxy
from sinkbench.stack.readiness import Check, checks
from sinkbench.stack.roles import Roles
from sinkbench.stack.securing import refuse_expired
from sinkbench.stack.smalldisk import SmallDisk, check_small_disk, small_disk, unmount_small_disk
from sinkbench.stack.supervisor import Supervisor
from sinkbench.stack.tools import find_java, find_pgbouncer, find_postgres
from sinkbench.topology import Topology

__all__ = ["LocalStack", "log_tail"]

# Of a small stack; each further node has so many seconds more.
READY_SECONDS, MORE_SECONDS, USUAL_NODES = 120.0, 10.0, 7
POLL_SECONDS = 0.25
# What is killed is gone at once, but for what the kernel has to write.
GONE_SECONDS = 10.0
LOG_LINES = 15
PLUGINS = frozenset(
    {"org.apache.camel.kafkaconnector.CamelSinkConnector", "io.debezium.connector.jdbc.JdbcSinkConnector"}
)
# Settings that no process of the stack is started with, as `Settings.show` shows them.
OF_NO_SERVICE = re.compile(r"SINKBENCH_(STACK|PLAN|THRESHOLDS|LIVE_PORT|[A-Z]+_(MEMORY|CPUS))=")


def log_tail(path: Path, lines: int = LOG_LINES) -> str:
    """The last `lines` lines of a log; empty if there is none."""
    try:
        with path.open("rb") as file:
            # A log may be large: only its end is read.
            file.seek(max(0, path.stat().st_size - 400 * lines))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


class LocalStack(Stack):
    """The stack of one home folder."""

    name = "local"

    def __init__(self, settings: Settings, checkout: Path = CHECKOUT) -> None:
        self.settings = settings
        self.home = settings.home
        self.checkout = checkout
        self._home = Home(settings)
        self._supervisor = Supervisor(self._home.supervisor_config, self._home.socket)
        self._clocks: dict[str, CpuClock] = {}
        self._jvms: dict[str, JvmClock] = {}
        self._roles = Roles(settings, self._home, self._supervisor)

    @property
    def workers(self) -> int:
        return self.settings.workers

    @property
    def layout(self) -> Topology:
        return self.settings.layout

    @property
    def endpoints(self) -> Endpoints:
        return endpoints_of(self.settings, primary=self._roles.primary)

    @property
    def lock_file(self) -> Path:
        return self.home / "race.lock"

    def log_file(self, service: str) -> Path:
        """The service's log. Raises StackError for an unknown service."""
        if service not in self.service_names():
            raise StackError(f"{service}: no such service; there are {', '.join(self.service_names())}")
        return self.home / "log" / f"{service}.log"

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        path = self.log_file(service)
        if not path.exists():
            raise StackError(f"{service} has no log yet; `sinkbench up` starts it")
        return ["tail", "-n", str(lines), *(["-F"] if follow else []), str(path)]

    def service_names(self) -> list[str]:
        """Every service, in starting order."""
        return [node.name for node in self.layout.nodes]

    def up(self, say: Say) -> None:
        # Before anything is made: a missing program is the commonest failure.
        for find in (find_java, find_postgres, find_pgbouncer):
            find()
        self._home.prepare()
        with self._lock(say):
            if self._supervisor.answers():
                self._refuse_other_settings()
                if self._home.is_secure:
                    refuse_expired(self._home.security)
                self._thaw_all()
                self._start_missing(say)
                self._roles.restore(say)
            else:
                end_leftovers(self.home)
                check_ports_free(self.settings.ports())
                check_memory(self.layout, psutil.virtual_memory().available)
                programs = ensure_distributions(self.checkout, self.settings.dist, say)
                self._home.stage(self.checkout)
                security = self._home.secure(say)
                try:
                    self._supervisor.launch(self._home.environment(programs, security))
                    (self.home / "running.env").write_text(self.settings.show(), encoding="utf-8")
                    self._start_missing(say)
                    self._roles.restore(say)
                except BaseException:
                    self.down()
                    raise

    def install(self, say: Say) -> None:
        """Fetches the programs that come from Maven, if they are missing or outdated."""
        self._home.prepare()
        with self._lock(say):
            ensure_distributions(self.checkout, self.settings.dist, say)

    def down(self) -> None:
        # What is frozen does not heed a request to end.
        self._thaw_all()
        self._supervisor.shutdown()
        # A supervisord that was killed leaves its services behind.
        end_leftovers(self.home)
        unmount_small_disk(self._home.small_disk)
        self._clocks.clear()
        self._jvms.clear()
        shutil.rmtree(self._home.runtime, ignore_errors=True)
        (self.home / "running.env").unlink(missing_ok=True)

    def running(self) -> bool:
        return self._supervisor.answers()

    def start_id(self) -> str | None:
        return self._supervisor.start_id()

    def states(self) -> list[ServiceState]:
        programs = {program.name: program for program in self._supervisor.programs()}
        states = []
        for service in self.service_names():
            program = programs.get(service)
            if program is None or program.state == "STOPPED":
                states.append(ServiceState(service, "stopped", None, ""))
            elif program.running:
                states.append(ServiceState(service, "running", program.pid, program.detail))
            else:
                states.append(ServiceState(service, "dead", None, program.detail, program.exit_code))
        return states

    @property
    def breakable(self) -> bool:
        return True

    def kill(self, service: str) -> None:
        self._supervisor.kill(service)
        # Whoever starts it again at once would find it running.
        deadline = time.monotonic() + GONE_SECONDS
        while self._runs(service) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS / 5)

    def stop(self, service: str) -> None:
        self._supervisor.stop(service)

    def start(self, service: str) -> None:
        self.log_file(service)
        self._clocks.pop(service, None)
        self._supervisor.start(service)
        self._wait_until_ready({service: self._check_of(service)}, lambda line: None)

    def freeze(self, service: str) -> None:
        suspend(self._process_of(service))

    def thaw(self, service: str) -> None:
        resume(self._process_of(service))
        self._wait_until_ready({service: self._check_of(service)}, lambda line: None)

    def check_promotion(self) -> None:
        if len(self.layout.of("postgres")) == 1:
            raise StackError(
                f"the topology {self.layout.name} has no replica of postgres; race with SINKBENCH_TOPOLOGY=published,"
                " or with one of yours with postgres: {nodes: 2}"
            )

    def promote(self) -> tuple[str, int]:
        return HOST, self._roles.promote()

    def demote(self) -> None:
        try:
            self._roles.demote()
        finally:
            self._forget_clocks("postgres")

    def restore_roles(self) -> None:
        try:
            self._roles.restore(lambda line: None)
        finally:
            self._forget_clocks("postgres")

    def _forget_clocks(self, service: str) -> None:
        """Of nodes that may have been started again."""
        for node in self.layout.of(service):
            self._clocks.pop(node.name, None)

    def _check_of(self, service: str) -> Check:
        """Whether a service is ready that starts alone: it need not wait for nodes that do not run."""
        gone = {state.name for state in self.states() if state.state != "running"} - {service}
        return checks(endpoints_of(self.settings, gone, self._roles.primary), PLUGINS)[service]

    def _runs(self, service: str) -> bool:
        return any(each.name == service and each.running for each in self._supervisor.programs())

    def _process_of(self, service: str) -> int:
        self.log_file(service)
        found = next((each.pid for each in self._supervisor.programs() if each.name == service and each.running), None)
        if found is None:
            raise StackError(f"{service} does not run; `sinkbench up` starts it")
        return found

    def _thaw_all(self) -> None:
        """Lets go on what a controller has frozen that was killed."""
        for program in self._supervisor.programs():
            if program.running and is_suspended(program.pid):
                resume(program.pid)

    @property
    def proxy_targets(self) -> Mapping[str, ProxyTarget]:
        return self._home.proxy_targets

    def check_proxy(self) -> None:
        check_proxy(self.checkout, self.settings.dist)

    def prepare_proxy(self, say: Say) -> None:
        ensure_proxy(self.checkout, self.settings.dist, say)

    def proxy(self) -> AbstractContextManager[Toxiproxy]:
        program = ensure_proxy(self.checkout, self.settings.dist, lambda line: None)
        # `down` finds it by that.
        return running_proxy(program, self.home / "log", {SERVICES_OF: str(self.home)})

    def check_small_disk(self) -> None:
        if len(self.layout.of("postgres")) > 1:
            raise StackError(
                f"the topology {self.layout.name} has a replica, which would write to the same small disk; "
                "race with SINKBENCH_TOPOLOGY=small"
            )
        check_small_disk()

    def small_disk(self, size_bytes: int) -> AbstractContextManager[SmallDisk]:
        return small_disk(self._home.small_disk, size_bytes, self.settings.user)

    def cpu_seconds(self) -> dict[str, float | None]:
        services = self.service_names()
        if any(service not in self._clocks for service in services):
            for program in self._supervisor.programs():
                known = self._clocks.get(program.name)
                if program.running and (known is None or known.pid != program.pid):
                    # It may have ended since.
                    with suppress(psutil.Error):
                        self._clocks[program.name] = CpuClock(program.pid)
        return {name: clock.seconds() if (clock := self._clocks.get(name)) else None for name in services}

    def jvm_cpu_seconds(self) -> dict[str, dict[str, float]]:
        for name, clock in self._clocks.items():
            if name not in self._jvms or self._jvms[name].pid != clock.pid:
                self._jvms[name] = JvmClock(clock.pid)
        return {name: found for name, clock in self._jvms.items() if (found := clock.seconds())}

    def memory_bytes(self) -> dict[str, float | None]:
        clocks = {name: self._clocks.get(name) for name in self.service_names()}
        return {name: None if clock is None else resident_bytes(clock.pids) for name, clock in clocks.items()}

    def machine_cpu(self) -> MachineCpu | None:
        return machine_cpu()

    def free_bytes(self) -> int | None:
        return shutil.disk_usage(existing_part(self.home)).free

    @property
    def data_path(self) -> Path | None:
        return self.home

    def command_lines(self) -> dict[str, list[str]]:
        return {each.name: words for each in self.states() if each.pid and (words := command_line(each.pid))}

    def plugin_jars(self) -> dict[str, tuple[str, ...]]:
        # Each worker unpacks a user's own for itself, and all have the same.
        return jars_of([self.settings.dist / "plugins", self._home.data / "connect" / "plugins-1"])

    # --- starting -----------------------------------------------------------------------------------------------

    def _start_missing(self, say: Say) -> None:
        self._roles.finish()
        dead = {state.name for state in self.states() if state.state != "running"}
        self._wait_until_ready(checks(self.endpoints, PLUGINS), say, to_start=dead)

    def _wait_until_ready(self, waiting: Mapping[str, Check], say: Say, to_start: Set[str] = frozenset()) -> None:
        """Waits until every check of `waiting` passes. Starts each of `to_start` once the service it needs is ready."""
        waits = {name: needs(self.layout, self.layout.node(name), self._roles.primary) for name in to_start}
        ready: set[str] = set()
        seconds = READY_SECONDS + MORE_SECONDS * max(len(waiting) - USUAL_NODES, 0)
        deadline = time.monotonic() + seconds
        with ThreadPoolExecutor(max_workers=len(waiting)) as pool:
            while True:
                for service in sorted(waits):
                    if waits[service] <= ready:
                        self._clocks.pop(service, None)
                        self._supervisor.start(service)
                        del waits[service]
                asked = [service for service in waiting if service not in ready | waits.keys()]
                reasons = dict(zip(asked, pool.map(lambda s: waiting[s](), asked), strict=True))
                for service in asked:
                    if reasons[service] is None:
                        ready.add(service)
                        say(f"{service} is ready")
                if ready == set(waiting):
                    return
                self._fail_if_dead(set(asked) - ready)
                if time.monotonic() > deadline:
                    late = min(set(waiting) - ready)
                    raise StackError(
                        f"{late} was not ready in {seconds:.0f} s: {reasons.get(late, 'not started')}\n"
                        + log_tail(self.log_file(late))
                    )
                time.sleep(POLL_SECONDS)

    def _fail_if_dead(self, starting: set[str]) -> None:
        for state in self.states():
            if state.name in starting and state.state != "running":
                raise StackError(
                    f"{state.name} died while starting ({state.detail}); the end of its log:\n"
                    + log_tail(self.log_file(state.name))
                )

    def _refuse_other_settings(self) -> None:
        with suppress(FileNotFoundError):
            running = (self.home / "running.env").read_text(encoding="utf-8", errors="replace").splitlines()
            for was, asked in zip(running, self.settings.show().splitlines(), strict=False):
                if was != asked and not OF_NO_SERVICE.match(asked):
                    raise StackError(f"the stack runs with {was}, asked is {asked}; run `sinkbench down` first")

    @contextmanager
    def _lock(self, say: Say) -> Iterator[None]:
        """One `up` at a time. The kernel releases the lock when its holder ends, however that ends."""
        with (self.home / "up.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another `sinkbench up` of this stack is going on; waiting for it")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
