"""The driver of the containers: the services of `docker-compose.yml`, seen from this machine or from among them."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.stack import Allowance, Endpoints, Say, ServiceState, own_addresses
from sinkbench.stack.engine import Container, Engine
from sinkbench.stack.processes import machine_cpu
from sinkbench.stack.readiness import checks

__all__ = ["LEAST_COMPOSE", "ComposeStack", "build_command", "down_command", "end_of_build", "too_old", "up_command"]

ACCOUNT = "sinkbench"
INDEX = "tides"
# In starting order. The controller is no part of the stack that it races on.
SERVICES = ("kafka", "elasticsearch", "postgres", "pgbouncer", "connect", "loadgen")
SCALED = ("connect", "loadgen")
# The ports inside, where the services find one another.
PORTS = {"kafka": 9092, "elasticsearch": 9200, "postgres": 5432, "pgbouncer": 6432, "connect": 8083, "loadgen": 8090}
METRICS_PORT = 9404
READY_SECONDS = 240
LOOK_SECONDS = 0.5
LOG_LINES = 15
# `up --wait` that waits for health, and the attribute `attach`.
LEAST_COMPOSE = "2.20"


def compose_command(checkout: Path, *arguments: str) -> list[str]:
    """The command line of `docker compose` for the project in the folder `checkout`."""
    return ["docker", "compose", "--project-directory", str(checkout), "--progress", "plain", *arguments]


def build_command(checkout: Path) -> list[str]:
    """Builds what has changed of all images."""
    return compose_command(checkout, "build")


def up_command(checkout: Path, scale: Mapping[str, int]) -> list[str]:
    """Starts what does not run, without the controller, and waits until all of it is healthy.

    Args:
        checkout: the folder with docker-compose.yml.
        scale: number of containers of the services that may have several; without it, compose would go back to the
            number in the file.
    """
    scaled = [part for service, count in scale.items() for part in ("--scale", f"{service}={count}")]
    return compose_command(
        checkout, "up", "--detach", "--wait", "--wait-timeout", str(READY_SECONDS), *scaled, *SERVICES
    )


def down_command(checkout: Path) -> list[str]:
    """Stops and removes all containers, the controller's too; the volumes stay."""
    return compose_command(checkout, "down", "--remove-orphans")


def too_old(compose: str) -> bool:
    """Whether a version of compose, as it prints it, lacks what docker-compose.yml needs."""

    def parts(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)[:2]]

    return parts(compose) < parts(LEAST_COMPOSE)


def end_of_build(output: str, lines: int = 15) -> str:
    """What matters in the output of a build that failed: the step that did, and the last lines that it printed."""
    found = output.strip().splitlines()
    steps = [number for number, line in enumerate(found) if line.startswith(" > [")]
    if not steps:
        return "\n".join(found[-lines:])
    printed = list(itertools.takewhile(lambda line: not line.startswith("------"), found[steps[-1] + 1 :]))
    return "\n".join([found[steps[-1]], *printed[-lines:]])


def names_of(containers: Sequence[Container]) -> dict[str, Container]:
    """Each container by what it is called in tables: connect-1, connect-2, but kafka."""
    return {
        f"{each.service}-{each.number}" if each.service in SCALED else each.service: each
        for service in SERVICES
        for each in containers
        if each.service == service
    }


def by_service(allowances: Mapping[str, Allowance]) -> dict[str, Allowance]:
    """The same by the service's name, where all its containers have the same; else each by its own, as connect-2."""
    found: dict[str, Allowance] = {}
    for name, allowance in allowances.items():
        service = name.rsplit("-", 1)[0]
        alike = all(each == allowance for other, each in allowances.items() if other.rsplit("-", 1)[0] == service)
        found[service if alike else name] = allowance
    return found


def state_of(name: str, container: Container) -> ServiceState:
    """A container as one service of the stack."""
    if container.state == "running":
        # What answers no check is no use to a trial.
        state = "dead" if container.health == "unhealthy" else "running"
        return ServiceState(name, state, None, container.status)
    ended_by_itself = container.state in ("created", "exited") and container.exit_code in (None, 0, 130, 143)
    return ServiceState(name, "stopped" if ended_by_itself else "dead", None, container.status)


def endpoints_of(containers: Sequence[Container], inside: bool) -> Endpoints:
    """How to reach the services: by their names from inside the project's network, else by the ports on 127.0.0.1.

    Raises:
        StackError: a service that runs has no port on this machine.
    """
    named = names_of([each for each in containers if each.state == "running"])
    workers = {name: each for name, each in named.items() if each.service == "connect"}
    loadgens = {name: each for name, each in named.items() if each.service == "loadgen"}

    def address(name: str) -> tuple[str, int]:
        container, port = named.get(name), PORTS[name.split("-")[0]]
        if inside:
            return (name if name in PORTS or container is None else container.hostname), port
        if container is None:
            return "127.0.0.1", 0
        # Kafka's clients are sent on to the address that it advertises, so its port is the same on either side.
        published = next(iter(container.ports.values()), None) if name == "kafka" else container.ports.get(port)
        if published is None:
            raise StackError(f"{name}: its port {port} is not published on 127.0.0.1; see docker-compose.yml")
        return "127.0.0.1", published

    def metrics(container: Container) -> str | None:
        if inside:
            return f"http://{container.hostname}:{METRICS_PORT}/metrics"
        published = container.ports.get(METRICS_PORT)
        return None if published is None else f"http://127.0.0.1:{published}/metrics"

    def url(name: str) -> str:
        host, port = address(name)
        return f"http://{host}:{port}"

    def dsn(name: str, database: str) -> str:
        host, port = address(name)
        return f"host={host} user={ACCOUNT} password={ACCOUNT} port={port} dbname={database}"

    return Endpoints(
        kafka="{}:{}".format(*address("kafka")),
        connect={name: url(name) for name in workers},
        worker_ids={f"{each.hostname}:{PORTS['connect']}": name for name, each in workers.items()},
        elasticsearch=url("elasticsearch"),
        elasticsearch_index=INDEX,
        postgres=dsn("postgres", ACCOUNT),
        pgbouncer_admin=dsn("pgbouncer", "pgbouncer"),
        connect_metrics={name: shown for name, each in workers.items() if (shown := metrics(each)) is not None},
        loadgens={name: url(name) for name in loadgens},
        loadgen_kafka=f"kafka:{PORTS['kafka']}",
    )


class ComposeStack:
    """The containers of the compose project in the folder `checkout`."""

    name = "compose"

    def __init__(self, settings: Settings, checkout: Path = CHECKOUT) -> None:
        """
        Raises:
            StackError: there is no engine, it may not be used, or it or compose is too old.
        """
        self.settings = settings
        self.checkout = checkout
        # In a container of the project there is no command `docker`, and other containers are reached by their names.
        self._engine = Engine(os.environ.get("COMPOSE_PROJECT_NAME") or "")
        self._inside = Path("/.dockerenv").exists() and self._engine.project_of(socket.gethostname()) is not None
        if not self._inside:
            self._check_compose()
            self._engine.project = self._project()
        self._looked = 0.0
        self._looked_at = time.time()
        self._cpu: dict[str, float | None] = {}
        self._troubles: dict[str, str] = {}

    # --- what it is ------------------------------------------------------------------------------------------------

    @property
    def workers(self) -> int:
        found = [each for each in self._engine.containers() if each.service == "connect"]
        return len(found) or self.settings.workers

    @property
    def endpoints(self) -> Endpoints:
        return endpoints_of(self._engine.containers(), self._inside)

    @property
    def lock_file(self) -> Path:
        # The one folder that the controller's container shares with this machine for writing.
        return self.checkout / "results" / ".race.lock"

    @property
    def unmeasured(self) -> tuple[str, ...]:
        return ()

    def addresses(self) -> dict[str, str]:
        return own_addresses(self.endpoints, ACCOUNT)

    def states(self) -> list[ServiceState]:
        named = names_of(self._engine.containers())
        absent = [s for s in SERVICES if s not in named and not any(name.startswith(f"{s}-") for name in named)]
        return [
            *(state_of(name, container) for name, container in named.items()),
            *(ServiceState(service, "stopped", None, "no container") for service in absent),
        ]

    def running(self) -> bool:
        return any(each.state == "running" and each.service in SERVICES for each in self._engine.containers())

    def free_bytes(self) -> int | None:
        try:
            # A container's own files lie where the engine keeps everything else.
            return shutil.disk_usage("/" if self._inside else self._engine.data_root()).free
        except OSError:
            return None

    @property
    def data_path(self) -> Path | None:
        # Inside, the engine has mounted this file from the folder where it keeps everything; "/" is a layer on that.
        path = Path("/etc/hostname") if self._inside else Path(self._engine.data_root())
        try:
            # The engine may be in a virtual machine of its own.
            return path if path.exists() else None
        except OSError:
            return None

    def allowances(self) -> dict[str, Allowance]:
        named = names_of(self._engine.containers())
        return by_service({name: self._engine.allowance(container) for name, container in named.items()})

    def command_lines(self) -> dict[str, list[str]]:
        named = names_of(self._engine.containers())
        return {name: self._engine.command_line(each) for name, each in named.items() if each.state == "running"}

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        return ["docker", "logs", "--tail", str(lines), *(["--follow"] if follow else []), self.container(service).id]

    # --- starting and stopping -------------------------------------------------------------------------------------

    def up(self, say: Say) -> None:
        if self._inside:
            self._start_again(say)
            return
        found = self._engine.containers()
        scale = {
            "connect": len([each for each in found if each.service == "connect"]) or self.settings.workers,
            "loadgen": len([each for each in found if each.service == "loadgen"]) or 1,
        }
        for each in found:
            if each.health == "unhealthy":
                say(f"restarting {each.service}, which is unhealthy")
                self._engine.stop(each)
        if not found:
            say("building images")
            built = self._run(build_command(self.checkout))
            if built.returncode != 0:
                raise StackError("an image could not be built:\n" + end_of_build(built.stdout + built.stderr))
        say("starting containers")
        started = self._run(up_command(self.checkout, scale))
        if started.returncode != 0:
            self._explain(started.stdout + started.stderr, remove=not found)
        self._forget()

    def down(self) -> None:
        if self._inside:
            raise StackError("a container cannot stop the stack that it is part of; run `docker compose down`")
        done = self._run(down_command(self.checkout))
        if done.returncode != 0:
            raise StackError(f"docker compose down failed: {_last_line(done.stderr)}")
        self._forget()

    def kill(self, service: str) -> None:
        self._engine.kill(self.container(service))

    def stop(self, service: str) -> None:
        self._engine.stop(self.container(service))

    def start(self, service: str) -> None:
        self._engine.start(self.container(service))
        self._wait_until_healthy([service])

    # --- watching --------------------------------------------------------------------------------------------------

    def cpu_seconds(self) -> dict[str, float | None]:
        """As in `Stack`, but read twice a second at most: a reading costs the engine more than all other probes.

        Empty between two readings.
        """
        return self._cpu if self._look() else {}

    @property
    def cpu_limits(self) -> dict[str, float]:
        given = {name: float(getattr(self.settings, f"{name}_cpus")) for name in SERVICES}
        return {name: cores for name, cores in given.items() if cores > 0}

    def machine_cpu(self) -> tuple[float, int] | None:
        # A container sees the whole machine's times, too.
        return machine_cpu()

    def troubles(self) -> dict[str, str]:
        self._look()
        return self._troubles

    def _look(self) -> bool:
        """Reads all containers if the last time is long enough ago; says whether it has."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return False
        named = names_of(self._engine.containers())
        self._cpu = {
            name: self._engine.cpu_seconds(each) if each.state == "running" else None for name, each in named.items()
        }
        before, self._looked_at = self._looked_at, time.time()
        starved = self._engine.out_of_memory(before, self._looked_at)
        self._troubles = {
            name: text for name, each in named.items() if (text := self._trouble(each, each.id in starved)) is not None
        }
        self._looked = time.monotonic()
        return True

    def _trouble(self, container: Container, starved: bool) -> str | None:
        setting = f"SINKBENCH_{container.service.upper()}_MEMORY"
        if starved or (container.exit_code == 137 and self._engine.was_out_of_memory(container)):
            limit = self._engine.memory_limit_bytes(container) / 2**20
            return f"was killed for memory, in part or whole: its limit is {limit:,.0f} MB ({setting})"
        if container.health == "unhealthy":
            return f"became unhealthy: {self._engine.last_check(container)}"
        return None

    # --- how -------------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._looked = 0.0
        self._looked_at = time.time()

    def container(self, service: str) -> Container:
        """The container that is called so in tables. Raises StackError if there is none."""
        named = names_of(self._engine.containers())
        if service not in named:
            raise StackError(f"{service}: no such container; there are {', '.join(named) or 'none: start the stack'}")
        return named[service]

    def _environment(self) -> dict[str, str]:
        """The caller's, with the settings in force: those in `.env` and the offset of the ports count here, too."""
        offset = self.settings.port_offset
        ours = {"home", "dist", "user", "stack", "plan", "thresholds"}
        given = {
            f"SINKBENCH_{name.upper()}": str(value + offset if name.endswith("_port") else value)
            for name, value in self.settings.model_dump(exclude=ours).items()
        }
        return {**os.environ, **given}

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self._environment(), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )

    def _check_compose(self) -> None:
        if shutil.which("docker") is None:
            raise StackError("the command docker is missing; run scripts/docker-bootstrap, or install Docker's client")
        done = self._run(["docker", "compose", "version", "--short"])
        if done.returncode != 0:
            raise StackError("the command docker has no compose; run scripts/docker-bootstrap, or install its plugin")
        if too_old(done.stdout):
            raise StackError(
                f"docker compose is {done.stdout.strip()}, {LEAST_COMPOSE} or newer is needed (older ones know no "
                "`attach` of a service); upgrade it"
            )

    def _project(self) -> str:
        done = self._run(compose_command(self.checkout, "config", "--format", "json"))
        if done.returncode != 0:
            raise StackError(f"{self.checkout / 'docker-compose.yml'}: {_last_line(done.stderr)}")
        return str(json.loads(done.stdout)["name"])

    def _start_again(self, say: Say) -> None:
        """Starts what has died, where there is no compose to do it."""
        again = []
        for name, container in names_of(self._engine.containers()).items():
            if state_of(name, container).state != "running":
                say(f"starting {name} again")
                if container.state == "running":
                    self._engine.stop(container)
                self._engine.start(container)
                again.append(name)
        self._wait_until_healthy(again)
        self._forget()

    def _wait_until_healthy(self, names: Sequence[str]) -> None:
        """Waits for the containers' own checks, and then for ours, from where the controller is."""
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
        ours = checks(self.endpoints)
        for name in names:
            while name in ours and (reason := ours[name]()) is not None:
                if time.monotonic() > deadline:
                    raise StackError(f"{name} is healthy but does not answer: {reason}")
                time.sleep(0.25)

    def _explain(self, output: str, *, remove: bool) -> None:
        """Raises StackError with the container that did not come up and the end of its log, or compose's own words."""
        for name, container in names_of(self._engine.containers()).items():
            if container.state == "exited" or container.health in ("unhealthy", "starting"):
                text = f"{name} did not start ({container.status}); the end of its log:\n" + self._engine.log_tail(
                    container, LOG_LINES
                )
                break
        else:
            text = f"docker compose up failed: {_last_line(output)}"
        if remove:
            self._run(down_command(self.checkout))
        raise StackError(text)


def _last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1].strip() if lines else "no message"
