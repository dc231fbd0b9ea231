"""The driver of the containers of `docker-compose.yml`. It runs on their host or in one of them."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import psutil

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.stack.assembly import checks
from sinkbench.stack.composecli import READY_SECONDS, ComposeCli, end_of_build, last_line
from sinkbench.stack.composeendpoints import Reach
from sinkbench.stack.composefaults import ContainerFaults
from sinkbench.stack.composemeter import ContainerMeter
from sinkbench.stack.containers import (
    DOWN,
    SERVICES,
    absent,
    by_service,
    check_nodes,
    check_security,
    names_of,
    state_of,
)
from sinkbench.stack.containersecurity import INSIDE
from sinkbench.stack.endpoint import Endpoints
from sinkbench.stack.engine import SECURITY_LABEL, Container, DockerEngine, allowance_of
from sinkbench.stack.hostlimits import check_host, engine_is_here
from sinkbench.stack.nodes import check_memory
from sinkbench.stack.protocol import Facts, Say, ServiceState, Stack, Usage
from sinkbench.stack.security import OF_CONTAINERS, Security, kept_security
from sinkbench.topology import Topology, service_of

LOG_LINES = 15
POLL_SECONDS = 0.25
OTHER_NODES = (
    "set SINKBENCH_TOPOLOGY to a topology with these nodes, or COMPOSE_FILE to files with those of the topology"
    " (docs/topologies.md)"
)


class ComposeStack(Stack):
    name = "compose"

    def __init__(self, settings: Settings, checkout: Path = CHECKOUT) -> None:
        """Raises StackError if there is no engine, it may not be used, or it or compose is too old."""
        self.settings = settings
        self.checkout = checkout
        self.engine = DockerEngine("")
        project = self.engine.project_of(socket.gethostname()) if Path("/.dockerenv").exists() else None
        # The project's containers do not have the command `docker`.
        self._cli = None if project is not None else ComposeCli(settings, checkout)
        self._config: dict[str, Any] = {} if self._cli is None else self._cli.config()
        self.engine.project = project or self._config["name"]
        self.own_container = "controller" if self.inside else None
        self._meter = ContainerMeter(self.engine)
        self._secrets: tuple[str, Security] | None = None

    @property
    def inside(self) -> bool:
        return self._cli is None

    def named(self) -> dict[str, Container]:
        return names_of(self.engine.containers())

    def container(self, service: str) -> Container:
        """Raises StackError if there is none."""
        found = self.named()
        if service not in found:
            raise StackError(f"{service}: no such container; there are {', '.join(found) or 'none: start the stack'}")
        return found[service]

    @property
    def endpoints(self) -> Endpoints:
        return self.reach().endpoints

    def reach(self, waits_for: Collection[str] | None = None) -> Reach:
        """While services start, only those in `waits_for` and running ones are waited for."""
        found = self.engine.containers()
        named = names_of(found)
        down = {name for name, each in named.items() if each.state != "running" or each.isolated}
        gone = frozenset() if waits_for is None else frozenset(down - set(waits_for))
        return Reach(named, self.inside, self.settings.layout, self._security_of(found), gone)

    def _security_of(self, found: Sequence[Container]) -> Security | None:
        if self.settings.security == "on":
            check_security(names_of(found), wanted=True)
        if not any(each.secured for each in found):
            return None
        # The container has exited, but its volumes can still be read.
        source = next((each for each in found if each.service == "security"), None)
        if source is None:
            raise StackError(f"the container of the service security is gone, which has the passwords; {DOWN}")
        if self._secrets is None or self._secrets[0] != source.id:
            folder = INSIDE if self.inside else self._copied(source)
            security = kept_security(folder, OF_CONTAINERS)
            if security is None:
                raise StackError(f"{folder}: has no passwords; see `docker logs {source.name}`")
            self._secrets = source.id, security
        return self._secrets[1]

    def _copied(self, source: Container) -> Path:
        folder = self.settings.home / "containers-secure"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, content in self.engine.files(source, f"{INSIDE}/controller").items():
                (folder / name).touch(0o600)
                (folder / name).write_bytes(content)
        except OSError as error:
            raise StackError(
                f"{error.filename}: {error.strerror}; set SINKBENCH_HOME to a folder you can write"
            ) from None
        return folder

    @property
    def workers(self) -> int:
        return len([each for each in self.engine.containers() if each.service == "connect"]) or self.settings.workers

    @property
    def layout(self) -> Topology | None:
        # `docker compose` may have started other nodes, or more workers.
        asked = self.settings.layout
        try:
            check_nodes(self.named(), asked, "", "")
        except StackError:
            return None
        return asked.with_sizes(self.workers, asked.heaps())

    @property
    def lock_file(self) -> Path:
        # The controller's container can write to no other folder of this machine.
        return self.checkout / "results" / ".race.lock"

    @property
    def faults(self) -> ContainerFaults:
        return ContainerFaults(self)

    def start_id(self) -> str | None:
        found = self.named()
        if not any(each.state == "running" for each in found.values()):
            return None
        # A service that died is restarted in the same container.
        return next(iter(found.values())).id

    def services(self) -> list[ServiceState]:
        found = self.named()
        return [
            *(state_of(name, container) for name, container in found.items()),
            *(ServiceState(name, "stopped", None, "no container") for name in absent(found, self.settings.layout)),
        ]

    def usage(self) -> Usage:
        return self._meter.read(self.named())

    def facts(self) -> Facts:
        found = self.named()
        given = {name: float(getattr(self.settings, f"{name}_cpus")) for name in SERVICES}
        allowances = {name: allowance_of(self.engine.inspect(each)["HostConfig"]) for name, each in found.items()}
        running = {name: each for name, each in found.items() if each.state == "running"}
        # Inside, "/" is an overlay, but this file is mounted from the engine's data folder.
        data = Path("/etc/hostname") if self.inside else Path(self.engine.data_root())
        return Facts(
            cpu_limits={name: cores for name, cores in given.items() if cores > 0},
            allowances=by_service(allowances),
            command_lines={name: self.engine.command_line(each) for name, each in running.items()},
            # The engine may run in a virtual machine, whose folders are not visible here.
            data_path=data if data.exists() else None,
        )

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        return ["docker", "logs", "--tail", str(lines), *(["--follow"] if follow else []), self.container(service).id]

    # --- starting and stopping -------------------------------------------------------------------------------------

    def up(self, say: Say) -> None:
        self.faults.undo()
        if self._cli is None:
            self._start_again(say)
            return
        found = self.named()
        self._check(found)
        for name, each in found.items():
            if each.health == "unhealthy":
                say(f"restarting {name}, which is unhealthy")
                self.engine.act("stop", each)
        if not found:
            say("building images")
            built = self._cli.run("build")
            if built.returncode != 0:
                raise StackError("an image could not be built:\n" + end_of_build(built.stdout + built.stderr))
        say("starting containers")
        there = Counter(each.service for each in found.values())
        scale = {"connect": there["connect"] or self.settings.workers, "loadgen": there["loadgen"] or 1}
        try:
            self._start_all(self._cli, [f"{service}={number}" for service, number in scale.items()])
        except StackError:
            if not found:
                self._cli.run(*DOWN_ARGUMENTS)
            raise
        self._meter.forget()

    def _check(self, found: dict[str, Container]) -> None:
        """Raises StackError if containers, compose files and settings disagree, or the machine is too small."""
        layout, services = self.settings.layout, self._config["services"]
        check_nodes(services, layout, "in the compose files", OTHER_NODES)
        check_nodes(found, layout, "the containers are those of another topology:", f"{DOWN}, or {OTHER_NODES}")
        ours = [name for name in services if service_of(name) in SERVICES]
        bare = [name for name in ours if SECURITY_LABEL not in (services[name].get("labels") or {})]
        secured = len(bare) < len(ours)
        if self.settings.security == "on" and not secured:
            raise StackError("SINKBENCH_SECURITY=on, but COMPOSE_FILE lacks docker-compose.secure.yml; add it there")
        if secured and bare:
            raise StackError(
                f"the compose files give {', '.join(bare)} no TLS; docker-compose.secure.yml is for the nodes of"
                " docker-compose.yml: add yours in a file of your own (docs/security.md)"
            )
        check_security(found, wanted=secured)
        if self.start_id() is None:
            check_host(layout)
            if engine_is_here():
                check_memory(layout, psutil.virtual_memory().available)

    def _start_all(self, cli: ComposeCli, scale: Sequence[str]) -> None:
        # Without --scale compose would return to the numbers in the file.
        scaled = [part for each in scale for part in ("--scale", each)]
        services = [name for name in self._config["services"] if name != "controller"]
        started = cli.run("up", "--detach", "--wait", "--wait-timeout", str(READY_SECONDS), *scaled, *services)
        if started.returncode != 0:
            raise StackError(self._why_not_started(started.stdout + started.stderr))
        # A node whose container is healthy may not have joined its cluster yet.
        self.wait_until_ready(list(self.named()))

    def _start_again(self, say: Say) -> None:
        ended = {name: each for name, each in self.named().items() if state_of(name, each).state != "running"}
        for name, container in ended.items():
            say(f"starting {name} again")
            if container.state == "running":
                self.engine.act("stop", container)
            self.engine.act("start", container)
        self.wait_until_ready(list(ended))
        self._meter.forget()

    def down(self) -> None:
        if self._cli is None:
            raise StackError("a container cannot stop the stack that it is part of; run `docker compose down`")
        self.faults.undo()
        done = self._cli.run(*DOWN_ARGUMENTS)
        if done.returncode != 0:
            raise StackError(f"docker compose down failed: {last_line(done.stderr)}")
        self._meter.forget()

    def wait_until_ready(self, names: Sequence[str]) -> None:
        """Waits until these services are ready for clients. Raises StackError with the end of a log."""
        deadline = time.monotonic() + READY_SECONDS
        for name in names:
            while (reason := self._why_not_ready(name, names)) is not None:
                late = time.monotonic() > deadline
                if late or self.container(name).state != "running":
                    what = f"was not ready in {READY_SECONDS} s: {reason}" if late else "died while starting"
                    tail = self.engine.log_tail(self.container(name), LOG_LINES)
                    raise StackError(f"{name} {what}; the end of its log:\n{tail}")
                time.sleep(POLL_SECONDS)

    def _why_not_ready(self, name: str, starting: Collection[str]) -> str | None:
        ours = checks(self.reach(waits_for=starting).endpoints, loadgens=True)
        return ours[name]() if name in ours else "it does not run"

    def _why_not_started(self, output: str) -> str:
        found = self.engine.containers()
        for each in found:
            if each.state == "created" and (error := self.engine.inspect(each)["State"].get("Error")):
                return f"{each.service} could not be started: {' '.join(error.split())}"
        # An exited container may be the reason why another one is not up yet.
        for wrong in ("exited", "unhealthy", "starting"):
            for each in found:
                if wrong in (each.state, each.health) and each.exit_code != 0:
                    tail = self.engine.log_tail(each, LOG_LINES)
                    return f"{each.service} did not start ({each.status}); the end of its log:\n{tail}"
        return f"docker compose up failed: {last_line(output)}"


# Removes the controller's container as well; the volumes stay.
DOWN_ARGUMENTS = ("down", "--remove-orphans")
