"""The Docker engine, asked by its API: the containers of one compose project, their CPU time, and what befell them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
from docker.errors import APIError, DockerException
from requests.exceptions import RequestException

from sinkbench.errors import StackError
from sinkbench.stack import Allowance

__all__ = ["LEAST_ENGINE", "Container", "Engine", "allowance_of", "command_of", "refusal", "too_old"]

# Health checks that are asked often while a service starts and seldom later: Docker engine 25.
LEAST_ENGINE, LEAST_API = "25.0", (1, 44)
TIMEOUT_SECONDS = 20
LIST_SECONDS = 0.05
PROJECT_LABEL = "com.docker.compose.project"
SERVICE_LABEL = "com.docker.compose.service"
NUMBER_LABEL = "com.docker.compose.container-number"
ONE_OFF_LABEL = "com.docker.compose.oneoff"


@dataclass(frozen=True)
class Container:
    """One container of the project.

    Attributes:
        id: the engine's, whole; its first 12 characters are the name of the host inside.
        service, number: as compose has them; number counts a service's containers from 1.
        state: the engine's word: created, running, paused, restarting, exited, dead.
        status: that in words for a person, with how long and its health.
        ports: the port of the host by the port inside.
    """

    id: str
    service: str
    number: int
    state: str
    status: str
    ports: dict[int, int]

    @property
    def hostname(self) -> str:
        """What the container is called on the project's network, and calls itself."""
        return self.id[:12]

    @property
    def exit_code(self) -> int | None:
        """What its process ended with; None while it runs."""
        found = re.match(r"Exited \((\d+)\)", self.status)
        return int(found.group(1)) if found else None

    @property
    def health(self) -> str | None:
        """healthy, unhealthy or starting; None if it is not checked or does not run."""
        found = re.search(r"\((?:health: )?(healthy|unhealthy|starting)\)", self.status)
        return found.group(1) if found else None


@contextmanager
def _asking(what: str) -> Iterator[None]:
    """Turns what the library raises into one line."""
    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        explanation = error.explanation if isinstance(error, APIError) else None
        raise StackError(f"the Docker engine did not {what}: {' '.join(str(explanation or error).split())}") from None


def _address() -> str | None:
    """Where the command `docker` finds its engine, which may be a context of the user's; None for the usual socket."""
    if os.environ.get("DOCKER_HOST") or shutil.which("docker") is None:
        return os.environ.get("DOCKER_HOST")
    done = subprocess.run(
        ["docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None if done.returncode == 0 else None


def refusal(said: str, where: str) -> str:
    """What to tell a user whose engine at `where` does not answer, by what the client library says of it."""
    if "Permission denied" in said or "PermissionError" in said:
        mend = "run `sudo usermod -aG docker $USER`, then log in again"
        return f"{where}: you may not use the Docker engine's socket; {mend}"
    mend = "start it, or run scripts/docker-bootstrap, which installs one from Debian's packages"
    return f"{where}: no Docker engine answers; {mend}"


def too_old(version: Mapping[str, Any], where: str) -> str | None:
    """What to tell a user whose engine is too old, by its own answer of its version; None if it is not."""
    if tuple(int(part) for part in str(version["ApiVersion"]).split(".")) >= LEAST_API:
        return None
    return (
        f"{where}: the Docker engine is {version['Version']}, {LEAST_ENGINE} or newer is needed (older ones know no "
        "start_interval of health checks); upgrade it"
    )


def allowance_of(host_config: Mapping[str, Any]) -> Allowance:
    """What a container may use, by the `HostConfig` of the engine's answer about it, in which 0 is no limit."""
    cores = [host_config["NanoCpus"] / 1e9] if host_config.get("NanoCpus") else []
    if (host_config.get("CpuQuota") or 0) > 0:
        cores.append(host_config["CpuQuota"] / (host_config.get("CpuPeriod") or 100_000))
    if host_config.get("CpusetCpus"):
        # As 0-3,6.
        ends = [part.partition("-") for part in host_config["CpusetCpus"].split(",")]
        cores.append(float(sum(int(last or first) - int(first) + 1 for first, _, last in ends)))
    return Allowance(min(cores, default=None), host_config.get("Memory") or None)


def command_of(processes: Sequence[Sequence[str]]) -> list[str]:
    """The words of the command line of a container's service, by its processes as (id, command line).

    It is the first beside the one that the engine puts before it to pass signals on. A word that holds spaces is
    several here.
    """
    lines = [line.split() for _, line in processes]
    return next((words for words in lines if words and not words[0].endswith("docker-init")), [])


def _connect() -> docker.DockerClient:
    """A client of the engine.

    Raises:
        StackError: there is no engine, it may not be used, or it is too old; says what to do.
    """
    address = _address()
    where = address or "unix:///var/run/docker.sock"
    try:
        client = docker.DockerClient(base_url=address, version="auto", timeout=TIMEOUT_SECONDS)
        version = client.version()
    except (DockerException, RequestException, OSError) as error:
        raise StackError(refusal(str(error), where)) from None
    complaint = too_old(version, where)
    if complaint is not None:
        raise StackError(complaint)
    return client


class Engine:
    """The engine, for one compose project."""

    def __init__(self, project: str) -> None:
        """Raises StackError if there is no engine, it may not be used, or it is too old."""
        self.project = project
        self._client = _connect()
        self._api: Any = self._client.api

    def project_of(self, container: str) -> str | None:
        """The compose project of a container, by its id or hostname; None if there is no such container."""
        try:
            labels = self._api.inspect_container(container)["Config"]["Labels"] or {}
        except docker.errors.NotFound:
            return None
        except (DockerException, RequestException) as error:
            raise StackError(f"the Docker engine did not tell what {container} is: {error}") from None
        return str(labels.get(PROJECT_LABEL)) if PROJECT_LABEL in labels else None

    def containers(self) -> list[Container]:
        """All containers of the project, running or not, by service and number."""
        with _asking("list the containers"):
            found = self._api.containers(all=True, filters={"label": [f"{PROJECT_LABEL}={self.project}"]})
        listed = [
            Container(
                id=each["Id"],
                service=each["Labels"].get(SERVICE_LABEL, ""),
                number=int(each["Labels"].get(NUMBER_LABEL, "1")),
                state=each["State"],
                status=each["Status"],
                ports={p["PrivatePort"]: p["PublicPort"] for p in each.get("Ports", []) if "PublicPort" in p},
            )
            for each in found
            if each["Labels"].get(ONE_OFF_LABEL, "False") == "False"
        ]
        return sorted(listed, key=lambda container: (container.service, container.number))

    def cpu_seconds(self, container: Container) -> float | None:
        """CPU seconds (user and system) of all processes of a container since it started; None if it does not run."""
        try:
            stats = self._api.stats(container.id, stream=False, one_shot=True)
            used = int(stats["cpu_stats"]["cpu_usage"]["total_usage"])
        except (DockerException, RequestException, OSError, KeyError, ValueError):
            return None
        return used / 1e9 if used else None

    def out_of_memory(self, since: float, until: float) -> set[str]:
        """Ids of the containers in which the kernel ended a process for want of memory; in seconds since the epoch."""
        filters = {"event": ["oom"], "label": [f"{PROJECT_LABEL}={self.project}"]}
        with _asking("tell its events"):
            events = self._api.events(since=f"{since:.6f}", until=f"{until:.6f}", filters=filters, decode=True)
            return {str(event["Actor"]["ID"]) for event in events}

    def memory_limit_bytes(self, container: Container) -> int:
        """How much memory a container may use; 0 for no limit."""
        with _asking(f"inspect {container.service}"):
            return int(self._api.inspect_container(container.id)["HostConfig"]["Memory"])

    def allowance(self, container: Container) -> Allowance:
        """What a container may use of its machine."""
        with _asking(f"inspect {container.service}"):
            return allowance_of(self._api.inspect_container(container.id)["HostConfig"])

    def command_line(self, container: Container) -> list[str]:
        """The words of the command line of a container that runs."""
        with _asking(f"list the processes of {container.service}"):
            return command_of(self._api.top(container.id, ps_args="-eo pid,args")["Processes"])

    def was_out_of_memory(self, container: Container) -> bool:
        """Whether a container that has ended was ended for want of memory."""
        with _asking(f"inspect {container.service}"):
            return bool(self._api.inspect_container(container.id)["State"].get("OOMKilled"))

    def last_check(self, container: Container) -> str:
        """What the last health check of a container printed, in one line."""
        with _asking(f"inspect {container.service}"):
            log = self._api.inspect_container(container.id)["State"].get("Health", {}).get("Log") or [{}]
        return " ".join(str(log[-1].get("Output", "")).split())[-200:] or "no answer"

    def log_tail(self, container: Container, lines: int) -> str:
        """The last lines of what a container has printed."""
        with _asking(f"show the log of {container.service}"):
            text: bytes = self._api.logs(container.id, tail=lines)
        return text.decode(errors="replace").rstrip()

    def kill(self, container: Container) -> None:
        """Ends a container at once."""
        with _asking(f"kill {container.service}"):
            self._api.kill(container.id)

    def stop(self, container: Container) -> None:
        """Asks a container to end, and waits until it has."""
        with _asking(f"stop {container.service}"):
            self._api.stop(container.id)
        # The list of containers may show it as running for a moment longer.
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline and any(
            each.id == container.id and each.state == "running" for each in self.containers()
        ):
            time.sleep(LIST_SECONDS)

    def start(self, container: Container) -> None:
        """Starts a container that has ended."""
        with _asking(f"start {container.service}"):
            self._api.start(container.id)

    def data_root(self) -> str:
        """The folder where the engine keeps images, containers and volumes."""
        with _asking("tell where it keeps its data"):
            return str(self._api.info()["DockerRootDir"])
