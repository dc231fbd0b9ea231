"""The Docker engine's API, for the containers of one compose project, and what they use."""

import io
import os
import re
import shutil
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from types import GeneratorType
from typing import Any

import docker
from docker.context import ContextAPI
from docker.errors import APIError, DockerException
from requests.exceptions import RequestException

from sinkbench.errors import StackError
from sinkbench.stack import Allowance, Usage
from sinkbench.stack.meter import JvmClock
from sinkbench.stack.processes import machine_cpu
from sinkbench.topology import service_of

TIMEOUT_SECONDS, LIST_SECONDS = 20, 0.05
LEAST_SECONDS = 0.5
"""The minimum interval between readings, which are expensive."""
LABEL = "com.docker.compose."
SECURITY_LABEL = "sinkbench.security"


@dataclass(frozen=True)
class Container:
    """`number` counts a service's containers from 1; `state` is created, running, paused, restarting, exited or dead;
    `ports` has the host's port by the container's port; `isolated`: it is in no network."""

    id: str
    service: str
    number: int
    state: str
    status: str
    ports: dict[int, int]
    isolated: bool = False
    name: str = ""
    secured: bool = False

    @property
    def hostname(self) -> str:
        return self.id[:12]

    @property
    def reachable(self) -> bool:
        return self.state == "running" and not self.isolated

    @property
    def exit_code(self) -> int | None:
        found = re.match(r"Exited \((\d+)\)", self.status)
        return int(found[1]) if found else None

    @property
    def health(self) -> str | None:
        """healthy, unhealthy or starting; None without a health check or while it does not run."""
        found = re.search(r"\((?:health: )?(healthy|unhealthy|starting)\)", self.status)
        return found[1] if found else None


def allowance_of(host_config: Mapping[str, Any]) -> Allowance:
    """Returns a container's limits from the engine's `HostConfig`, in which 0 means no limit."""
    return Allowance((host_config.get("NanoCpus") or 0) / 1e9 or None, host_config.get("Memory") or None)


def used_by(stats: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Returns CPU seconds and bytes of memory (anonymous and mapped, no page cache); None for a stopped container."""
    used = stats.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage")
    memory = stats.get("memory_stats", {}).get("stats", {})
    # The names differ between versions 1 and 2 of control groups; mapped files include shared memory.
    versions = (("anon", "file_mapped"), ("total_rss", "total_mapped_file"))
    parts = next((names for names in versions if memory.keys() >= set(names)), None)
    resident = None if parts is None else float(sum(memory[name] for name in parts))
    return int(used) / 1e9 if used else None, resident


def command_of(processes: Sequence[Sequence[str]]) -> list[str]:
    """Returns the words of a service's command line from its container's processes: (id, parent's id, command line)."""
    # The service is the child of the engine's init; health checks are not, and may have a lower id.
    inits = {number for number, _, line in processes if line.split()[0].endswith("docker-init")}
    return next((line.split() for _, parent, line in processes if parent in inits), [])


def _connect() -> Any:
    """The engine of DOCKER_HOST or the user's Docker context. Raises StackError."""
    context = ContextAPI.get_context(os.environ.get("DOCKER_CONTEXT") or None)
    address = os.environ.get("DOCKER_HOST") or (context.Host if context else None)
    try:
        return docker.APIClient(base_url=address, version="auto", timeout=TIMEOUT_SECONDS)
    except (DockerException, RequestException, OSError) as error:
        why = "no Docker engine answers; start it, or run scripts/docker-bootstrap, which installs one"
        if "Permission" in str(error):
            why = "you may not use the Docker engine's socket; run `sudo usermod -aG docker $USER`, then log in again"
        raise StackError(f"{address}: {why}") from None


class DockerEngine:
    """The Docker engine, for one compose project. Every method raises StackError if the engine refuses."""

    def __init__(self, project: str) -> None:
        self.project = project
        self._api = _connect()

    def _ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        try:
            found = getattr(self._api, method)(*arguments, **options)
            return list(found) if isinstance(found, GeneratorType) else found
        except (DockerException, RequestException, OSError) as error:
            why = " ".join(str((isinstance(error, APIError) and error.explanation) or error).split())
            raise StackError(f"the Docker engine could not {method.replace('_', ' ')}: {why}") from None

    @property
    def _ours(self) -> list[str]:
        return [f"{LABEL}project={self.project}"]

    def project_of(self, container: str) -> str | None:
        """Returns the compose project of the container with this id or hostname; None if there is none."""
        found = self._ask("containers", all=True, filters={"id": container})
        return found[0]["Labels"].get(f"{LABEL}project") if found else None

    def containers(self) -> list[Container]:
        listed = [
            Container(
                id=each["Id"],
                service=each["Labels"].get(f"{LABEL}service", ""),
                number=int(each["Labels"].get(f"{LABEL}container-number", "1")),
                state=each["State"],
                status=each["Status"],
                ports={p["PrivatePort"]: p["PublicPort"] for p in each.get("Ports", []) if "PublicPort" in p},
                isolated=not each.get("NetworkSettings", {}).get("Networks"),
                name=next(iter(each.get("Names") or []), "").lstrip("/"),
                secured=SECURITY_LABEL in each["Labels"],
            )
            for each in self._ask("containers", all=True, filters={"label": self._ours})
            if each["Labels"].get(f"{LABEL}oneoff", "False") == "False"
        ]
        return sorted(listed, key=lambda container: (container.service, container.number))

    def used(self, container: Container) -> tuple[float | None, float | None]:
        """Returns CPU seconds and bytes of memory; None for a container that does not run."""
        try:
            return used_by(self._ask("stats", container.id, stream=False, one_shot=True))
        except (StackError, ValueError):
            return None, None

    def inspect(self, container: Container) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("inspect_container", container.id)
        return found

    def process_id(self, container: Container) -> int | None:
        """Returns the id of a container's first process; None if it does not run, or not on this machine."""
        pid = int(self.inspect(container)["State"]["Pid"])
        try:
            # If the engine runs in a virtual machine, this id may be another process here.
            return pid if container.id in Path(f"/proc/{pid}/cgroup").read_text() else None
        except OSError:
            return None

    def out_of_memory(self, since: float, until: float) -> set[str]:
        """Returns ids of containers in which the kernel killed a process for memory; times in seconds since 1970."""
        filters = {"event": ["oom"], "label": self._ours}
        events = self._ask("events", since=f"{since:.6f}", until=f"{until:.6f}", filters=filters, decode=True)
        return {str(event["Actor"]["ID"]) for event in events}

    def command_line(self, container: Container) -> list[str]:
        return command_of(self._ask("top", container.id, ps_args="-eo pid,ppid,args")["Processes"])

    def log_tail(self, container: Container, lines: int) -> str:
        text: bytes = self._ask("logs", container.id, tail=lines)
        return text.decode(errors="replace").rstrip()

    def files(self, container: Container, folder: str) -> dict[str, bytes]:
        chunks, _ = self._ask("get_archive", container.id, folder)
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            read = {Path(each.name).name: archive.extractfile(each) for each in archive}
            return {name: content.read() for name, content in read.items() if content is not None}

    def act(self, what: str, container: Container) -> None:
        """Does kill, stop, start, restart, pause or unpause; kill and stop wait for the container's end."""
        self._ask(what, container.id)
        # The list of containers may still show it as running for a moment; a start would then do nothing.
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while what in ("kill", "stop") and time.monotonic() < deadline:
            if not any(each.id == container.id and each.state == "running" for each in self.containers()):
                return
            time.sleep(LIST_SECONDS)

    def _network(self) -> Any:
        if found := self._ask("networks", filters={"label": self._ours}):
            return found[0]
        raise StackError(f"the project {self.project} has no network; start the stack")

    def gateway(self) -> str:
        """Returns the address of the engine's machine in the project's network. Raises StackError if it has none."""
        for each in (self._network().get("IPAM") or {}).get("Config") or []:
            if "." in (address := str(each.get("Gateway") or "")):
                return address
        raise StackError("the project's network has no gateway, by which its containers could reach this machine")

    def disconnect(self, container: Container) -> None:
        self._ask("disconnect_container_from_network", container.id, self._network()["Id"])

    def reconnect(self, container: Container) -> None:
        """Connects the container to the project's network under its names, unless it is connected."""
        network = self._network()
        if network["Name"] not in self.inspect(container)["NetworkSettings"]["Networks"]:
            names = [container.service, container.name]
            self._ask("connect_container_to_network", container.id, network["Id"], aliases=names)

    def data_root(self) -> str:
        return str(self._ask("info")["DockerRootDir"])


class ContainerMeter:
    def __init__(self, engine: DockerEngine) -> None:
        self._engine = engine
        self._last = Usage()
        self._one_reader = Lock()
        self.forget()

    def forget(self) -> None:
        """Drops what is known of the containers, which may be replaced by others."""
        self._read, self._read_at = 0.0, time.time()
        self._jvms: dict[str, JvmClock | None] = {}
        self._disk: Path | None = None

    def read(self, named: Mapping[str, Container]) -> Usage:
        """Returns the usage of these containers; without CPU times within `LEAST_SECONDS` of the last reading.

        Safe from several threads."""
        with self._one_reader:
            if time.monotonic() - self._read < LEAST_SECONDS:
                return replace(self._last, cpu_seconds={})
            running = {name: each for name, each in named.items() if each.state == "running"}
            used = {name: self._engine.used(each) if name in running else (None, None) for name, each in named.items()}
            before, self._read_at = self._read_at, time.time()
            starved = self._engine.out_of_memory(before, self._read_at)
            for new in (each for each in running.values() if each.id not in self._jvms):
                pid = self._engine.process_id(new)
                self._jvms[new.id] = None if pid is None else JvmClock(pid)
            jvms = {
                name: clock.seconds() for name, each in running.items() if (clock := self._jvms[each.id]) is not None
            }
            if self._disk is None:
                # Inside a container this folder is missing, and the root file system is on the engine's disk.
                root = Path(self._engine.data_root())
                self._disk = root if root.exists() else Path("/")
            self._last = Usage(
                cpu_seconds={name: seconds for name, (seconds, _) in used.items()},
                jvm_cpu_seconds={name: parts for name, parts in jvms.items() if parts},
                memory_bytes={name: resident for name, (_, resident) in used.items()},
                troubles={n: text for n, each in named.items() if (text := self._trouble(each, each.id in starved))},
                # These are the whole machine's times, also inside a container.
                machine=machine_cpu(),
                free_bytes=shutil.disk_usage(self._disk).free,
            )
            self._read = time.monotonic()
            return self._last

    def _trouble(self, container: Container, starved: bool) -> str | None:
        inspect = self._engine.inspect
        if starved or (container.exit_code == 137 and inspect(container)["State"].get("OOMKilled")):
            limit = (allowance_of(inspect(container)["HostConfig"]).memory_bytes or 0) / 2**20
            setting = f"SINKBENCH_{service_of(container.service).upper()}_MEMORY"
            return f"was killed for memory, in part or whole: its limit is {limit:,.0f} MB ({setting})"
        if container.health == "unhealthy":
            log = inspect(container)["State"].get("Health", {}).get("Log") or [{}]
            return f"became unhealthy: {' '.join(str(log[-1].get('Output', '')).split())[-200:] or 'no answer'}"
        return None
