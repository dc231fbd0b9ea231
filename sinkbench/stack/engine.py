"""The Docker engine's API, for the containers of one compose project."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException
from requests.exceptions import RequestException

from sinkbench.errors import StackError
from sinkbench.stack import Allowance
from sinkbench.stack.tools import run

__all__ = [
    "LEAST_ENGINE",
    "SECURITY_LABEL",
    "Container",
    "ContainerUsage",
    "DockerEngine",
    "allowance_of",
    "command_of",
    "refusal",
    "too_old",
    "usage_of",
]

# The first engine with a start_interval of health checks.
LEAST_ENGINE, LEAST_API = "25.0", (1, 44)
TIMEOUT_SECONDS = 20
LIST_SECONDS = 0.05
PROJECT_LABEL = "com.docker.compose.project"
SERVICE_LABEL = "com.docker.compose.service"
NUMBER_LABEL = "com.docker.compose.container-number"
ONE_OFF_LABEL = "com.docker.compose.oneoff"
SECURITY_LABEL = "sinkbench.security"


@dataclass(frozen=True)
class Container:
    """One container of the project.

    Attributes:
        number: counts a service's containers from 1.
        state: created, running, paused, restarting, exited or dead.
        status: the state for a person, with its duration and health.
        ports: the host's port by the container's port.
        isolated: whether it is in no network.
        name: its own on the project's network, where it has its service's and `hostname`, too; of these three the last
            is none that a certificate can be for.
        mark: which passwords it knows, as `Security.mark` tells them apart; None if it wants none.
    """

    id: str
    service: str
    number: int
    state: str
    status: str
    ports: dict[int, int]
    isolated: bool = False
    name: str = ""
    mark: str | None = None

    @property
    def hostname(self) -> str:
        """The container's name on the project's network."""
        return self.id[:12]

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        found = re.match(r"Exited \((\d+)\)", self.status)
        return int(found.group(1)) if found else None

    @property
    def health(self) -> str | None:
        """healthy, unhealthy or starting; None without a health check or while it does not run."""
        found = re.search(r"\((?:health: )?(healthy|unhealthy|starting)\)", self.status)
        return found.group(1) if found else None


@dataclass(frozen=True)
class ContainerUsage:
    """What a container has used since it started, and holds now; None is not told.

    Attributes:
        cpu_seconds: user and system.
        memory_bytes: of its processes: their own, and what they have mapped of files; without the cache of other files.
        network: through its interfaces.
    """

    cpu_seconds: float | None = None
    memory_bytes: float | None = None


@contextmanager
def _asking(what: str) -> Iterator[None]:
    """Raises the client library's errors as StackError, in one line."""
    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        explanation = error.explanation if isinstance(error, APIError) else None
        raise StackError(f"the Docker engine did not {what}: {' '.join(str(explanation or error).split())}") from None


def _address() -> str | None:
    """The engine's address, from DOCKER_HOST or the user's Docker context; None for the default socket."""
    if os.environ.get("DOCKER_HOST") or shutil.which("docker") is None:
        return os.environ.get("DOCKER_HOST")
    done = run(["docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"])
    return done.stdout.strip() or None if done.returncode == 0 else None


def refusal(said: str, where: str) -> str:
    """The message for an engine at `where` that does not answer; `said` is the client library's error."""
    if "Permission denied" in said or "PermissionError" in said:
        mend = "run `sudo usermod -aG docker $USER`, then log in again"
        return f"{where}: you may not use the Docker engine's socket; {mend}"
    mend = "start it, or run scripts/docker-bootstrap, which installs one from Debian's packages"
    return f"{where}: no Docker engine answers; {mend}"


def too_old(version: Mapping[str, Any], where: str) -> str | None:
    """The message for an engine that is too old, None for one that is not; `version` is its own answer."""
    if tuple(int(part) for part in str(version["ApiVersion"]).split(".")) >= LEAST_API:
        return None
    return (
        f"{where}: the Docker engine is {version['Version']}, {LEAST_ENGINE} or newer is needed (older ones know no "
        "start_interval of health checks); upgrade it"
    )


def allowance_of(host_config: Mapping[str, Any]) -> Allowance:
    """What a container may use, from the engine's `HostConfig`, where 0 is no limit."""
    cores = [host_config["NanoCpus"] / 1e9] if host_config.get("NanoCpus") else []
    if (host_config.get("CpuQuota") or 0) > 0:
        cores.append(host_config["CpuQuota"] / (host_config.get("CpuPeriod") or 100_000))
    if host_config.get("CpusetCpus"):
        # A list such as 0-3,6.
        ends = [part.partition("-") for part in host_config["CpusetCpus"].split(",")]
        cores.append(float(sum(int(last or first) - int(first) + 1 for first, _, last in ends)))
    return Allowance(min(cores, default=None), host_config.get("Memory") or None)


def usage_of(stats: Mapping[str, Any]) -> ContainerUsage:
    """What a container uses, from the engine's answer to `stats`. One that does not run uses nothing that is told."""
    used = stats.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage")
    memory = stats.get("memory_stats", {}).get("stats", {})
    # By the names of either version of the kernel's control groups; files that are mapped hold shared memory, too.
    versions = (("anon", "file_mapped"), ("total_rss", "total_mapped_file"))
    parts = next((names for names in versions if all(name in memory for name in names)), None)
    return ContainerUsage(
        cpu_seconds=int(used) / 1e9 if used else None,
        memory_bytes=None if parts is None else float(sum(memory[name] for name in parts)),
    )


def command_of(processes: Sequence[Sequence[str]]) -> list[str]:
    """The words of a service's command line, by its container's processes as (id, parent's id, command line)."""
    # The service is the child of the engine's own init; health checks are not, and may have a lower id.
    inits = {number for number, _, line in processes if line.split()[0].endswith("docker-init")}
    # A word with spaces is split.
    return next((line.split() for _, parent, line in processes if parent in inits), [])


def _connect() -> docker.APIClient:
    """A client. Raises StackError if there is no engine, it may not be used, or it is too old; says what to do."""
    address = _address()
    where = address or "unix:///var/run/docker.sock"
    try:
        client = docker.APIClient(base_url=address, version="auto", timeout=TIMEOUT_SECONDS)
        version = client.version()
    except (DockerException, RequestException, OSError) as error:
        raise StackError(refusal(str(error), where)) from None
    if (complaint := too_old(version, where)) is not None:
        raise StackError(complaint)
    return client


class DockerEngine:
    """The Docker engine, for one compose project."""

    def __init__(self, project: str) -> None:
        """Raises StackError if there is no engine, it may not be used, or it is too old."""
        self.project = project
        self._api: Any = _connect()

    def project_of(self, container: str) -> str | None:
        """The compose project of the container with this id or hostname; None if there is none."""
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
                isolated=not each.get("NetworkSettings", {}).get("Networks"),
                name=next(iter(each.get("Names") or []), "").lstrip("/"),
                mark=each["Labels"].get(SECURITY_LABEL),
            )
            for each in found
            if each["Labels"].get(ONE_OFF_LABEL, "False") == "False"
        ]
        return sorted(listed, key=lambda container: (container.service, container.number))

    def usage(self, container: Container) -> ContainerUsage:
        """What a container uses, by one question; nothing of one that does not run."""
        try:
            return usage_of(self._api.stats(container.id, stream=False, one_shot=True))
        except (DockerException, RequestException, OSError, KeyError, ValueError, TypeError):
            return ContainerUsage()

    def process_id(self, container: Container) -> int | None:
        """The id of a container's first process on this machine; None if it does not run, or runs elsewhere."""
        with _asking(f"inspect {container.service}"):
            pid = int(self._api.inspect_container(container.id)["State"]["Pid"])
        try:
            # The engine may run in a virtual machine, or the process of that id here be another one.
            return pid if container.id in Path(f"/proc/{pid}/cgroup").read_text() else None
        except OSError:
            return None

    def out_of_memory(self, since: float, until: float) -> set[str]:
        """Ids of containers with a process that the kernel killed for memory; times in seconds since the epoch."""
        filters = {"event": ["oom"], "label": [f"{PROJECT_LABEL}={self.project}"]}
        with _asking("tell its events"):
            events = self._api.events(since=f"{since:.6f}", until=f"{until:.6f}", filters=filters, decode=True)
            return {str(event["Actor"]["ID"]) for event in events}

    def _inspected(self, container: Container) -> Any:
        with _asking(f"inspect {container.service}"):
            return self._api.inspect_container(container.id)

    def allowance(self, container: Container) -> Allowance:
        """What a container may use."""
        return allowance_of(self._inspected(container)["HostConfig"])

    def command_line(self, container: Container) -> list[str]:
        """The words of a running container's command line."""
        with _asking(f"list the processes of {container.service}"):
            return command_of(self._api.top(container.id, ps_args="-eo pid,ppid,args")["Processes"])

    def started_at(self, container: Container) -> str:
        """When a container was started last, in the engine's own words."""
        return str(self._inspected(container)["State"]["StartedAt"])

    def was_out_of_memory(self, container: Container) -> bool:
        """Whether a stopped container was killed for memory."""
        return bool(self._inspected(container)["State"].get("OOMKilled"))

    def start_error(self, container: Container) -> str:
        """Why the engine could not start a container, in one line; empty if it could, or did not try."""
        return " ".join(str(self._inspected(container)["State"].get("Error", "")).split())

    def last_check(self, container: Container) -> str:
        """The output of a container's last health check, in one line."""
        log = self._inspected(container)["State"].get("Health", {}).get("Log") or [{}]
        return " ".join(str(log[-1].get("Output", "")).split())[-200:] or "no answer"

    def log_tail(self, container: Container, lines: int) -> str:
        """The last lines of a container's output."""
        with _asking(f"show the log of {container.service}"):
            text: bytes = self._api.logs(container.id, tail=lines)
        return text.decode(errors="replace").rstrip()

    def kill(self, container: Container) -> None:
        """Kills a container with SIGKILL and waits for its end: a large process takes a moment to go."""
        with _asking(f"kill {container.service}"):
            self._api.kill(container.id)
        self._wait_until_gone(container)

    def pause(self, container: Container) -> None:
        """Freezes all processes of a container."""
        with _asking(f"pause {container.service}"):
            self._api.pause(container.id)

    def unpause(self, container: Container) -> None:
        """Lets the processes of a paused container go on."""
        with _asking(f"unpause {container.service}"):
            self._api.unpause(container.id)

    def stop(self, container: Container) -> None:
        """Stops a container and waits for its end."""
        with _asking(f"stop {container.service}"):
            self._api.stop(container.id)
        self._wait_until_gone(container)

    def _wait_until_gone(self, container: Container) -> None:
        # The list of containers may still show it as running for a moment; whoever starts it then starts nothing.
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline and any(
            each.id == container.id and each.state == "running" for each in self.containers()
        ):
            time.sleep(LIST_SECONDS)

    def start(self, container: Container) -> None:
        """Starts a stopped container."""
        with _asking(f"start {container.service}"):
            self._api.start(container.id)

    def gateway(self) -> str:
        """The address of the engine's machine in the project's network. Raises StackError if it has none there."""
        for each in (self._network().get("IPAM") or {}).get("Config") or []:
            if "." in (address := str(each.get("Gateway") or "")):
                return address
        raise StackError("the project's network has no gateway, by which its containers could reach this machine")

    def _network(self) -> Any:
        """The project's network. Raises StackError if there is none."""
        with _asking("describe the project's network"):
            found = self._api.networks(filters={"label": [f"{PROJECT_LABEL}={self.project}"]})
        if not found:
            raise StackError(f"the project {self.project} has no network; start the stack")
        return found[0]

    def disconnect(self, container: Container) -> None:
        """Takes the project's network from a running container."""
        network = self._network()
        with _asking(f"disconnect {container.service}"):
            self._api.disconnect_container_from_network(container.id, network["Id"])

    def reconnect(self, container: Container) -> None:
        """Gives it back, under the container's names; nothing if it has it."""
        network, inspected = self._network(), self._inspected(container)
        if network["Name"] in inspected["NetworkSettings"]["Networks"]:
            return
        names = [container.service, inspected["Name"].lstrip("/")]
        with _asking(f"connect {container.service}"):
            self._api.connect_container_to_network(container.id, network["Id"], aliases=names)

    def data_root(self) -> str:
        """The engine's folder of images, containers and volumes."""
        with _asking("tell where it keeps its data"):
            return str(self._api.info()["DockerRootDir"])
