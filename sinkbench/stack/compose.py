"""The driver of the containers of `docker-compose.yml`. It runs on their host, or in one of them."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.stack import Endpoints, Facts, Say, ServiceState, Stack, Usage
from sinkbench.stack.composecli import DOWN, READY_SECONDS, ComposeCli, end_of_build, last_line, up_arguments
from sinkbench.stack.composeendpoints import endpoints_of
from sinkbench.stack.composefaults import ComposeFaults, ComposeProxies
from sinkbench.stack.containers import (
    SCALED,
    SERVICES,
    by_service,
    check_nodes,
    check_security,
    names_of,
    of_other_nodes,
    state_of,
)
from sinkbench.stack.engine import Container, ContainerUsage, DockerEngine
from sinkbench.stack.hostlimits import check_host, granted
from sinkbench.stack.jvmthreads import JvmClock
from sinkbench.stack.nodes import check_memory
from sinkbench.stack.overlay import PORTS
from sinkbench.stack.processes import machine_cpu
from sinkbench.stack.proxyserver import VARIABLES, proxy_targets_at
from sinkbench.stack.readiness import checks
from sinkbench.stack.securing import refuse_expired, secure_containers, security_of_containers
from sinkbench.stack.security import Security
from sinkbench.stack.securityoverlay import folder_of_containers
from sinkbench.topology import Topology, service_of

__all__ = ["ComposeStack"]

LOOK_SECONDS = 0.5
LOG_LINES = 15


class ComposeStack(Stack):
    """The containers of the compose project in the folder `checkout`."""

    name = "compose"

    def __init__(self, settings: Settings, checkout: Path = CHECKOUT) -> None:
        """Raises StackError if there is no engine, it may not be used, or it or compose is too old."""
        self.settings = settings
        self.checkout = checkout
        self._engine = DockerEngine(os.environ.get("COMPOSE_PROJECT_NAME") or "")
        self._inside = Path("/.dockerenv").exists() and self._engine.project_of(socket.gethostname()) is not None
        self.own_container = "controller" if self._inside else None
        # A container of the project has no command `docker`.
        self._cli = None if self._inside else ComposeCli(settings, checkout)
        if self._cli is not None:
            self._engine.project = self._cli.project()
        self._looked = 0.0
        self._looked_at = time.time()
        self._told = True
        self._used: dict[str, ContainerUsage] = {}
        self._troubles: dict[str, str] = {}
        self._jvms: dict[str, JvmClock | None] = {}

    # --- what it is ------------------------------------------------------------------------------------------------

    @property
    def workers(self) -> int:
        found = [each for each in self._engine.containers() if each.service == "connect"]
        return len(found) or self.settings.workers

    @property
    def endpoints(self) -> Endpoints:
        found, security = self._engine.containers(), self._security
        check_security(found, security)
        return endpoints_of(found, self._inside, self.settings.layout, security=security)

    @property
    def _security(self) -> Security | None:
        return security_of_containers(self.settings, self._inside)

    @property
    def layout(self) -> Topology | None:
        found, asked = self._engine.containers(), self.settings.layout
        # Somebody may have started others with `docker compose`, and more workers.
        return None if of_other_nodes(found, asked) else asked.with_sizes(self.workers, asked.heaps())

    @property
    def lock_file(self) -> Path:
        # The only folder of this machine that the controller's container can write to.
        return self.checkout / "results" / ".race.lock"

    def services(self) -> list[ServiceState]:
        named = names_of(self._engine.containers())
        there = {each.service for each in named.values()}
        # Of a scaled service any number may be there.
        wanted = [
            name
            for service in SERVICES
            for name in ([service] if service in SCALED else [node.name for node in self.settings.layout.of(service)])
        ]
        absent = [name for name in wanted if name not in there]
        return [
            *(state_of(name, container) for name, container in named.items()),
            *(ServiceState(service, "stopped", None, "no container") for service in absent),
        ]

    def start_id(self) -> str | None:
        # A service that has died is started again in its container.
        found = names_of(self._engine.containers())
        if not any(each.state == "running" for each in found.values()):
            return None
        return next((each.id for name, each in found.items() if name == "kafka"), "")

    def _free_bytes(self) -> int | None:
        try:
            # A container's root file system lies on the engine's disk.
            return shutil.disk_usage("/" if self._inside else self._engine.data_root()).free
        except OSError:
            return None

    def _data_path(self) -> Path | None:
        # Inside, "/" is an overlay; this file is mounted from the engine's own folder.
        path = Path("/etc/hostname") if self._inside else Path(self._engine.data_root())
        try:
            # The engine may run in a virtual machine, whose folders are not here.
            return path if path.exists() else None
        except OSError:
            return None

    def facts(self) -> Facts:
        named = names_of(self._engine.containers())
        given = {name: float(getattr(self.settings, f"{name}_cpus")) for name in SERVICES}
        return Facts(
            cpu_limits={name: cores for name, cores in given.items() if cores > 0},
            allowances=by_service({name: self._engine.allowance(container) for name, container in named.items()}),
            command_lines={
                name: self._engine.command_line(each) for name, each in named.items() if each.state == "running"
            },
            data_path=self._data_path(),
        )

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        return ["docker", "logs", "--tail", str(lines), *(["--follow"] if follow else []), self.container(service).id]

    # --- starting and stopping -------------------------------------------------------------------------------------

    def up(self, say: Say) -> None:
        self._thaw_all()
        self._rejoin_all()
        if self._cli is None:
            self._start_again(say)
            return
        found = self._engine.containers()
        check_nodes(found, self.settings.layout)
        check_security(found, self._security)
        if self.start_id() is None:
            self._check_machine()
            secure_containers(self.settings, self._engine.project, say)
        elif self.settings.security == "on":
            refuse_expired(folder_of_containers(self.settings.home))
        there = Counter(each.service for each in found)
        scale = {"connect": there["connect"] or self.settings.workers, "loadgen": there["loadgen"] or 1}
        for each in found:
            if each.health == "unhealthy":
                say(f"restarting {each.service}, which is unhealthy")
                self._engine.stop(each)
        if not found:
            say("building images")
            built = self._cli.run("build")
            if built.returncode != 0:
                raise StackError("an image could not be built:\n" + end_of_build(built.stdout + built.stderr))
        say("starting containers")
        try:
            self._start_all(self._cli, scale)
        except StackError:
            if not found:
                self._cli.run(*DOWN)
            raise
        self._forget()

    def _start_all(self, cli: ComposeCli, scale: Mapping[str, int]) -> None:
        """Starts all containers and waits until they are well. Raises StackError."""
        nodes = [node.name for node in self.settings.layout.nodes if node.service != "connect"]
        started = cli.run(*up_arguments(scale, [name for name in nodes if name not in SERVICES]))
        if started.returncode != 0:
            raise StackError(self._why_not_started(started.stdout + started.stderr))
        # A node that is well by its container's check need not be one of its cluster's yet.
        self._wait_until_healthy(list(names_of(self._engine.containers())))

    def _check_machine(self) -> None:
        """Raises StackError if the engine's machine cannot hold the topology, none of which runs yet."""
        found = granted()
        check_host(self.settings.layout, found)
        if found.here:
            check_memory(self.settings.layout, psutil.virtual_memory().available)

    def down(self) -> None:
        if self._cli is None:
            raise StackError("a container cannot stop the stack that it is part of; run `docker compose down`")
        self._thaw_all()
        done = self._cli.run(*DOWN)
        if done.returncode != 0:
            raise StackError(f"docker compose down failed: {last_line(done.stderr)}")
        self._forget()

    @property
    def faults(self) -> ComposeFaults:
        proxies = None
        # A container of the project has neither Go nor what it has built.
        if not self._inside:
            running = {each.service: each for each in self._engine.containers() if each.state == "running"}
            ports = {name: running[name].ports.get(PORTS[name], 0) if name in running else 0 for name in VARIABLES}
            proxies = ComposeProxies(self.settings, self.checkout, self._engine, proxy_targets_at(ports))
        return ComposeFaults(self._engine, self.container, self._wait_until_healthy, proxies)

    def _thaw_all(self) -> None:
        """Lets go on what a controller has frozen that was killed."""
        for container in self._engine.containers():
            if container.state == "paused":
                self._engine.unpause(container)

    def _rejoin_all(self) -> None:
        """Gives back the network that a controller has taken that was killed."""
        for container in self._engine.containers():
            if container.isolated:
                self._engine.reconnect(container)

    # --- watching --------------------------------------------------------------------------------------------------

    def usage(self) -> Usage:
        """As in `Stack`; containers are read at most twice a second; CPU seconds of a reading are given once."""
        self._look()
        told, self._told = self._told, True
        return Usage(
            cpu_seconds={} if told else {name: each.cpu_seconds for name, each in self._used.items()},
            jvm_cpu_seconds=self._jvm_cpu_seconds(),
            memory_bytes={name: each.memory_bytes for name, each in self._used.items()},
            troubles=self._troubles,
            # Inside a container, too, these are the whole machine's times.
            machine=machine_cpu(),
            free_bytes=self._free_bytes(),
        )

    def _jvm_cpu_seconds(self) -> dict[str, dict[str, float]]:
        found = {}
        for name, each in names_of(self._engine.containers()).items():
            if each.id not in self._jvms:
                pid = self._engine.process_id(each)
                self._jvms[each.id] = None if pid is None else JvmClock(pid)
            clock = self._jvms[each.id]
            if clock is not None and (seconds := clock.seconds()):
                found[name] = seconds
        return found

    def _look(self) -> None:
        """Reads all containers if the last reading is old enough."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        named = names_of(self._engine.containers())
        self._used = {
            name: self._engine.usage(each) if each.state == "running" else ContainerUsage()
            for name, each in named.items()
        }
        before, self._looked_at = self._looked_at, time.time()
        starved = self._engine.out_of_memory(before, self._looked_at)
        self._troubles = {
            name: text for name, each in named.items() if (text := self._trouble(each, each.id in starved)) is not None
        }
        self._looked, self._told = time.monotonic(), False

    def _trouble(self, container: Container, starved: bool) -> str | None:
        setting = f"SINKBENCH_{service_of(container.service).upper()}_MEMORY"
        if starved or (container.exit_code == 137 and self._engine.was_out_of_memory(container)):
            limit = (self._engine.allowance(container).memory_bytes or 0) / 2**20
            return f"was killed for memory, in part or whole: its limit is {limit:,.0f} MB ({setting})"
        if container.health == "unhealthy":
            return f"became unhealthy: {self._engine.last_check(container)}"
        return None

    # --- helpers ---------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._looked = 0.0
        self._looked_at = time.time()
        self._jvms.clear()

    def container(self, service: str) -> Container:
        """The container of a service by its name, as connect-1. Raises StackError if there is none."""
        named = names_of(self._engine.containers())
        if service not in named:
            raise StackError(f"{service}: no such container; there are {', '.join(named) or 'none: start the stack'}")
        return named[service]

    def _start_again(self, say: Say) -> None:
        """Starts containers that have ended or are unhealthy, without compose."""
        named = names_of(self._engine.containers())
        ended = {name: each for name, each in named.items() if state_of(name, each).state != "running"}
        for name, container in ended.items():
            say(f"starting {name} again")
            if container.state == "running":
                self._engine.stop(container)
            self._engine.start(container)
        self._wait_until_healthy(list(ended))
        self._forget()

    def _wait_until_healthy(self, names: Sequence[str]) -> None:
        """Waits for the containers' health checks, then for the controller's own checks."""
        deadline = time.monotonic() + READY_SECONDS
        waiting = set(names)
        while waiting:
            named = names_of(self._engine.containers())
            for name in sorted(waiting):
                container = named.get(name)
                if container is None or container.state != "running":
                    tail = "" if container is None else "\n" + self._engine.log_tail(container, LOG_LINES)
                    raise StackError(f"{name} died while starting; the end of its log:{tail}")
            waiting = {name for name in waiting if named[name].health not in ("healthy", None)}
            if time.monotonic() > deadline:
                late = sorted(waiting)[0]
                raise StackError(
                    f"{late} was not healthy in {READY_SECONDS} s: {self._engine.last_check(named[late])}\n"
                    + self._engine.log_tail(named[late], LOG_LINES)
                )
            time.sleep(0.25)
        found = self._engine.containers()
        # Whoever starts alone need not wait for nodes that do not run.
        gone = {name for name, each in names_of(found).items() if each.state != "running" or each.isolated}
        ours = checks(endpoints_of(found, self._inside, self.settings.layout, gone - set(names), self._security))
        for name in names:
            while name in ours and (reason := ours[name]()) is not None:
                if time.monotonic() > deadline:
                    raise StackError(f"{name} is healthy but does not answer: {reason}")
                time.sleep(0.25)

    def _why_not_started(self, output: str) -> str:
        """Which container did not start, with its error or the end of its log; else the end of compose's `output`."""
        found = names_of(self._engine.containers())
        for name, container in found.items():
            if container.state == "created" and (error := self._engine.start_error(container)):
                return f"{name} could not be started: {error}"
        # One that has ended may be why another has not come up yet.
        for wrong in ("exited", "unhealthy", "starting"):
            for name, container in found.items():
                if wrong in (container.state, container.health):
                    tail = self._engine.log_tail(container, LOG_LINES)
                    return f"{name} did not start ({container.status}); the end of its log:\n{tail}"
        return f"docker compose up failed: {last_line(output)}"
