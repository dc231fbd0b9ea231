"""The driver of the containers of `docker-compose.yml`. It runs on their host or in one of them."""

import json
import os
import re
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

import psutil

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.stack import Endpoints, Facts, Faults, Say, ServiceState, Stack, Usage
from sinkbench.stack.assembly import LOG_LINES, await_ready, checks, proxy_targets
from sinkbench.stack.containers import DOWN, PORTS, Reach, check_security, names_of, other_nodes, states_of
from sinkbench.stack.containersecurity import INSIDE, copied
from sinkbench.stack.engine import SECURITY_LABEL, Container, ContainerMeter, DockerEngine, allowance_of
from sinkbench.stack.proxyserver import Proxies
from sinkbench.stack.security import OF_CONTAINERS, Security, kept_security
from sinkbench.stack.tools import run
from sinkbench.topology import Topology, check_memory, service_of

READY_SECONDS = 240
# Removes the controller's container as well; the volumes stay.
DOWN_ARGUMENTS = ("down", "--remove-orphans")
BASE, PUBLISHED, SECURE = (f"docker-compose.{name}yml" for name in ("", "published.", "secure."))
# The files that compose adds to the project's file if no files are named.
OVERRIDES = [f"{stem}.override.{end}" for stem in ("compose", "docker-compose") for end in ("yml", "yaml")]
OTHER_NODES = (
    "set SINKBENCH_TOPOLOGY to a topology with these nodes, or COMPOSE_FILE to files with those of the topology"
    " (docs/topologies.md)"
)


class ComposeCli:
    """The command `docker compose`, run in the checkout with the settings in force."""

    def __init__(self, settings: Settings, checkout: Path) -> None:
        """Raises StackError if there is no such command."""
        self._settings, self._checkout = settings, checkout
        if shutil.which("docker") is None or run(["docker", "compose", "version"]).returncode != 0:
            raise StackError("there is no command `docker compose`; run scripts/docker-bootstrap, which installs it")

    def run(self, *arguments: str, check: str = "", lines: int = 1) -> subprocess.CompletedProcess[str]:
        """Raises StackError with the text `check` and the last `lines` of the output if the command fails."""
        named = [part for file in self._files() for part in ("--file", file)]
        command = ["docker", "compose", *named, "--progress", "plain", *arguments]
        done = run(command, self._environment(), self._checkout)
        if check and done.returncode != 0:
            said = (done.stdout + done.stderr).strip().splitlines()
            raise StackError(f"{check}: " + ("\n".join(said[-lines:]).strip() or "no message"))
        return done

    def config(self) -> dict[str, Any]:
        """Returns the resolved project: name, services, volumes. Raises StackError if compose rejects its files."""
        said = self.run("config", "--format", "json", check=str(self._checkout / BASE)).stdout
        found: dict[str, Any] = json.loads(said)
        return found

    def _files(self) -> list[str]:
        """None if COMPOSE_FILE names them. Security is last: the user's override cannot remove it."""
        environment = self._checkout / ".env"
        lines = environment.read_text(encoding="utf-8") if environment.exists() else ""
        if os.environ.get("COMPOSE_FILE") or re.search(r"^COMPOSE_FILE=.", lines, re.MULTILINE):
            return []
        published = [PUBLISHED] if self._settings.layout.name == "published" else []
        secure = [SECURE] if self._settings.security == "on" else []
        own = [name for name in OVERRIDES if (self._checkout / name).exists()]
        return [BASE, *published, *own[:1], *secure] if published or secure else []

    def _environment(self) -> dict[str, str]:
        settings = self._settings
        ours = {"home", "dist", "user", "stack", "plan", "thresholds", "topology"}
        given = {
            f"SINKBENCH_{name.upper()}": str(value + settings.port_offset if name.endswith("_port") else value)
            for name, value in settings.model_dump(exclude=ours).items()
        }
        nodes = {
            f"{node.name.upper().replace('-', '_')}_PORT": str(settings.port(f"{node.service}_port", node.number))
            for node in settings.layout.nodes
            if node.service != "connect" and node.number > 1
        }
        return {**os.environ, **given, **nodes}


class ComposeStack(Stack):
    name = "compose"

    def __init__(self, settings: Settings, checkout: Path = CHECKOUT) -> None:
        """Raises StackError if there is no engine or no compose, or they may not be used."""
        self.settings = settings
        self.checkout = checkout
        self.engine = DockerEngine("")
        project = self.engine.project_of(socket.gethostname()) if Path("/.dockerenv").exists() else None
        # The project's containers do not have the command `docker`.
        self._cli = None if project is not None else ComposeCli(settings, checkout)
        self._config: dict[str, Any] = {} if self._cli is None else self._cli.config()
        self.engine.project = project or self._config["name"]
        self.own_container = None if self._cli is not None else "controller"
        self._meter = ContainerMeter(self.engine)
        self._secrets: tuple[str, Security] | None = None

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
        down = {name for name, each in named.items() if not each.reachable}
        gone = frozenset() if waits_for is None else frozenset(down - set(waits_for))
        return Reach(named, self._cli is None, self.settings.layout, self._security_of(found), gone)

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
            folder = INSIDE
            if self._cli is not None:
                folder = copied(self.settings.home, self.engine.files(source, f"{INSIDE}/controller"))
            if (security := kept_security(folder, OF_CONTAINERS)) is None:
                raise StackError(f"{source.name} has made no passwords; `docker logs {source.name}` says why")
            self._secrets = source.id, security
        return self._secrets[1]

    @property
    def workers(self) -> int:
        return len([each for each in self.engine.containers() if each.service == "connect"]) or self.settings.workers

    @property
    def layout(self) -> Topology | None:
        # `docker compose` may have started other nodes, or more workers.
        asked = self.settings.layout
        return None if other_nodes(self.named(), asked) else asked.with_sizes(self.workers, asked.heaps())

    @property
    def lock_file(self) -> Path:
        # The controller's container can write to no other folder of this machine.
        return self.checkout / "results" / ".race.lock"

    def start_id(self) -> str | None:
        found = list(self.named().values())
        # A service that died is restarted in the same container.
        return found[0].id if any(each.state == "running" for each in found) else None

    def services(self) -> list[ServiceState]:
        return states_of(self.named(), self.settings.layout)

    def usage(self) -> Usage:
        return self._meter.read(self.named())

    def facts(self) -> Facts:
        found = self.named()
        first = {service_of(name): each for name, each in reversed(found.items())}
        # Inside, "/" is an overlay, but this file is mounted from the engine's data folder.
        data = Path("/etc/hostname") if self._cli is None else Path(self.engine.data_root())
        return Facts(
            allowances={
                name: allowance_of(self.engine.inspect(each)["HostConfig"]) for name, each in reversed(first.items())
            },
            command_lines={n: self.engine.command_line(each) for n, each in found.items() if each.state == "running"},
            # The engine may run in a virtual machine, whose folders are not visible here.
            data_path=data if data.exists() else None,
        )

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        return ["docker", "logs", "--tail", str(lines), *(["--follow"] if follow else []), self.container(service).id]

    def log_tail(self, service: str, lines: int) -> str:
        return self.engine.log_tail(self.container(service), lines)

    def up(self, say: Say) -> None:
        self._undo()
        found = self.named()
        if self._cli is not None:
            self._check(found)
        again = [n for n, c in found.items() if c.health == "unhealthy" or (self._cli is None and not c.reachable)]
        for name in again:
            say(f"starting {name} again")
            self.engine.act("restart", found[name])
        if self._cli is None:
            self.wait_until_ready(again)
        else:
            if not found:
                say("building images")
                self._cli.run("build", check="an image could not be built", lines=2 * LOG_LINES)
            say("starting containers")
            self._start_all(self._cli, found)
        self._meter.forget()

    def _check(self, found: dict[str, Container]) -> None:
        """Raises StackError if containers, compose files and settings disagree, or the machine is too small."""
        layout, services = self.settings.layout, self._config["services"]
        if said := other_nodes(services, layout):
            raise StackError(f"in the compose files {said}; {OTHER_NODES}")
        if said := other_nodes(found, layout):
            raise StackError(f"the containers are those of another topology: {said}; {DOWN}, or {OTHER_NODES}")
        ours = [name for name in services if service_of(name) in PORTS]
        bare = [name for name in ours if SECURITY_LABEL not in (services[name].get("labels") or {})]
        if bare and (len(bare) < len(ours) or self.settings.security == "on"):
            raise StackError(
                f"the compose files give {', '.join(bare)} no TLS: COMPOSE_FILE lacks docker-compose.secure.yml, or a"
                " file of your own for nodes that it does not have (docs/security.md)"
            )
        check_security(found, wanted=not bare)
        # The memory of a virtual machine with the engine is not known here.
        if self.start_id() is None and Path(self.engine.data_root()).exists():
            check_memory(layout, psutil.virtual_memory().available)

    def _start_all(self, cli: ComposeCli, found: dict[str, Container]) -> None:
        there = Counter(each.service for each in found.values())
        # Without --scale compose would return to the numbers in the file.
        scale = {"connect": there["connect"] or self.settings.workers, "loadgen": there["loadgen"] or 1}
        scaled = [part for name, number in scale.items() for part in ("--scale", f"{name}={number}")]
        services = [name for name in self._config["services"] if name != "controller"]
        done = cli.run("up", "--detach", "--wait", "--wait-timeout", str(READY_SECONDS), *scaled, *services)
        try:
            if done.returncode != 0:
                self._fail(done.stdout + done.stderr)
            # A node whose container is healthy may not have joined its cluster yet.
            self.wait_until_ready(list(self.named()))
        except StackError:
            if not found:
                cli.run(*DOWN_ARGUMENTS)
            raise

    def _fail(self, output: str) -> NoReturn:
        found = self.engine.containers()
        # An exited container may be the reason why another one is not up yet.
        for wrong in ("exited", "unhealthy", "starting"):
            for each in (each for each in found if wrong in (each.state, each.health) and each.exit_code != 0):
                tail = self.engine.log_tail(each, LOG_LINES)
                raise StackError(f"{each.service} did not start ({each.status}); the end of its log:\n{tail}")
        raise StackError(f"docker compose up failed: {(output.strip().splitlines() or ['no message'])[-1].strip()}")

    def down(self) -> None:
        if self._cli is None:
            raise StackError("a container cannot stop the stack that it is part of; run `docker compose down`")
        self._undo()
        self._cli.run(*DOWN_ARGUMENTS, check="docker compose down failed")
        self._meter.forget()

    def wait_until_ready(self, names: Sequence[str]) -> None:
        """Waits until these services are ready for clients. Raises StackError with the end of a log."""
        await_ready(
            names,
            lambda: checks(self.reach(waits_for=names).endpoints, loadgens=True),
            lambda: {name: each.status for name, each in self.named().items() if each.state != "running"},
            lambda name: self.log_tail(name, LOG_LINES),
            READY_SECONDS,
        )

    @property
    def faults(self) -> Faults:
        # The project's containers have neither Go nor a built proxy.
        proxies = None
        if self._cli is not None:
            places = self.checkout, self.settings, lambda: proxy_targets(self.reach().place)
            proxies = Proxies(*places, self._allow_proxies, lambda: self.engine.gateway())
        return Faults(self._act, lambda service: self.wait_until_ready([service]), can_isolate=True, proxies=proxies)

    def _allow_proxies(self) -> None:
        if any(each.secured for each in self.named().values()) or self.settings.security == "on":
            raise StackError(
                "the containers are secured: no proxy can stand before a sink, whose certificate is not for its"
                " address; race on the stack local, or without SINKBENCH_SECURITY"
            )

    def _undo(self) -> None:
        """Resumes frozen containers and reconnects networks after a killed controller."""
        for container in self.engine.containers():
            if container.state == "paused":
                self.engine.act("unpause", container)
            if container.isolated:
                self.engine.reconnect(container)

    def _act(self, what: str, service: str) -> None:
        container = self.container(service)
        if what == "isolate":
            self.engine.disconnect(container)
        elif what == "rejoin":
            self.engine.reconnect(container)
        else:
            self.engine.act({"freeze": "pause", "thaw": "unpause"}.get(what, what), container)
