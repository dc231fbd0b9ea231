"""The nodes of a local stack as processes under supervisord: states, logs and starting."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.settings import Settings
from sinkbench.stack import Endpoints, Say, ServiceState
from sinkbench.stack.assembly import Check, checks, endpoints_of, needs, specs
from sinkbench.stack.home import Home
from sinkbench.stack.processes import is_suspended, resume
from sinkbench.stack.spec import OwnNodes, Place, Roles
from sinkbench.stack.supervisor import Supervisor

# For a small stack, and for each further node.
READY_SECONDS, MORE_SECONDS, USUAL_NODES = 120.0, 10.0, 7
POLL_SECONDS = 0.25
LOG_LINES = 15
PLUGINS = frozenset(
    {"org.apache.camel.kafkaconnector.CamelSinkConnector", "io.debezium.connector.jdbc.JdbcSinkConnector"}
)


def log_tail(path: Path, lines: int = LOG_LINES) -> str:
    try:
        with path.open("rb") as file:
            # Logs may be large.
            file.seek(max(0, path.stat().st_size - 400 * lines))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


class LocalNodes:
    def __init__(self, settings: Settings, home: Home) -> None:
        self.settings = settings
        self.home = home
        self.supervisor = Supervisor(home.supervisor_config, home.socket)
        self.names = [node.name for node in settings.layout.nodes]

    @cached_property
    def roles(self) -> dict[str, Roles]:
        own = OwnNodes(self.home.place, self.supervisor, self.home.data)
        return {
            spec.name: spec.roles(own)
            for spec in specs().values()
            if spec.roles is not None and len(self.settings.layout.of(spec.name)) > 1
        }

    def place(self, gone: Set[str] = frozenset()) -> Place:
        """Returns where the nodes are now; no other node waits for those in `gone`."""
        return self.home.place(gone, {service: roles.primary for service, roles in self.roles.items()})

    def endpoints(self, gone: Set[str] = frozenset()) -> Endpoints:
        return endpoints_of(self.place(gone))

    def log_file(self, service: str) -> Path:
        """Raises StackError for an unknown service."""
        if service not in self.names:
            raise StackError(f"{service}: no such service; there are {', '.join(self.names)}")
        return self.home.path / "log" / f"{service}.log"

    def states(self) -> list[ServiceState]:
        programs = {program.name: program for program in self.supervisor.programs()}
        states = []
        for service in self.names:
            program = programs.get(service)
            if program is None or program.state == "STOPPED":
                states.append(ServiceState(service, "stopped", None, ""))
            elif program.running:
                states.append(ServiceState(service, "running", program.pid, program.detail))
            else:
                states.append(ServiceState(service, "dead", None, program.detail, program.exit_code))
        return states

    def pids(self) -> dict[str, int]:
        return {each.name: each.pid for each in self.supervisor.programs() if each.running}

    def thaw_all(self) -> None:
        """Resumes all processes that a killed controller left frozen."""
        for pid in self.pids().values():
            if is_suspended(pid):
                resume(pid)

    def start_missing(self, say: Say) -> None:
        """Starts every node that does not run, and waits until all are ready. Raises StackError."""
        for roles in self.roles.values():
            roles.finish()
        dead = {state.name for state in self.states() if state.state != "running"}
        self._wait(checks(self.endpoints(), PLUGINS), say, to_start=dead)
        for roles in self.roles.values():
            roles.restore(say)

    def wait_for(self, service: str) -> None:
        """Waits until a node that was started alone is ready; it does not wait for nodes that do not run."""
        gone = {state.name for state in self.states() if state.state != "running"} - {service}
        self._wait({service: checks(self.endpoints(gone), PLUGINS)[service]}, lambda line: None)

    def _wait(self, waiting: Mapping[str, Check], say: Say, to_start: Set[str] = frozenset()) -> None:
        """Waits until all checks pass. Starts each of `to_start` once the nodes that it needs are ready."""
        place = self.place()
        waits = {name: needs(place, place.layout.node(name)) for name in to_start}
        ready: set[str] = set()
        seconds = READY_SECONDS + MORE_SECONDS * max(len(waiting) - USUAL_NODES, 0)
        deadline = time.monotonic() + seconds
        with ThreadPoolExecutor(max_workers=len(waiting)) as pool:
            while True:
                for service in sorted(waits):
                    if waits[service] <= ready:
                        self.supervisor.start(service)
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
