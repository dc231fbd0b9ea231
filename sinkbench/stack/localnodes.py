"""The nodes of a local stack as processes under supervisord: states, logs and starting."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from functools import cached_property
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.settings import Settings
from sinkbench.stack import Endpoints, Faults, Say, ServiceState
from sinkbench.stack.assembly import checks, endpoints_of, needs, proxy_targets, specs
from sinkbench.stack.home import Home
from sinkbench.stack.processes import SERVICES_OF, is_suspended, resume, suspend
from sinkbench.stack.proxyserver import Proxies
from sinkbench.stack.readiness import LOG_LINES, await_ready
from sinkbench.stack.smalldisk import SmallDisks
from sinkbench.stack.spec import OwnNodes, Place, Roles
from sinkbench.stack.supervisor import Supervisor
from sinkbench.stack.tools import run

# For a small stack, and for each further node.
READY_SECONDS, MORE_SECONDS, USUAL_NODES = 120.0, 10.0, 7
# The process of a killed service ends at once, except for pending writes in the kernel.
GONE_SECONDS = 10.0
PLUGINS = frozenset(
    {"org.apache.camel.kafkaconnector.CamelSinkConnector", "io.debezium.connector.jdbc.JdbcSinkConnector"}
)


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
            else:
                state, code = ("running", None) if program.running else ("dead", program.exit_code)
                states.append(ServiceState(service, state, program.pid or None, program.detail, code))
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
        self._wait(self.names, frozenset(), dead, say)
        for roles in self.roles.values():
            roles.restore(say)

    def wait_for(self, service: str) -> None:
        """Waits until a node that was started alone is ready; it does not wait for nodes that do not run."""
        gone = {state.name for state in self.states() if state.state != "running"} - {service}
        self._wait([service], gone, frozenset(), lambda line: None)

    def _wait(self, names: Sequence[str], gone: Set[str], dead: Set[str], say: Say) -> None:
        """Waits until these nodes are ready. Starts each of `dead` once the nodes that it needs are ready."""
        place, unstarted = self.place(), set(dead)
        ready_checks = checks(self.endpoints(gone), PLUGINS)

        def start(ready: Set[str]) -> Set[str]:
            for name in sorted(unstarted):
                if needs(place, place.layout.node(name)) <= ready:
                    self.supervisor.start(name)
                    unstarted.discard(name)
            return unstarted

        await_ready(
            names,
            lambda: ready_checks,
            lambda: {state.name: state.detail for state in self.states() if state.state != "running"},
            lambda name: run(["tail", "-n", str(LOG_LINES), str(self.log_file(name))]).stdout.rstrip(),
            READY_SECONDS + MORE_SECONDS * max(len(names) - USUAL_NODES, 0),
            say,
            start,
        )

    # --- faults ----------------------------------------------------------------------------------------------------

    def faults(self, checkout: Path) -> Faults:
        return Faults(
            self._act,
            self.wait_for,
            proxies=Proxies(
                checkout,
                self.settings,
                lambda: proxy_targets(self.home.place()),
                # `down` finds the proxy by this variable.
                environment={SERVICES_OF: str(self.home.path)},
            ),
            small_disks=self._small_disks,
            promotion=self.roles.get,
        )

    def _small_disks(self, sink: str) -> SmallDisks | None:
        # A replica would write to the same small disk.
        single = len(self.settings.layout.of(sink)) == 1
        return SmallDisks(self.home.small_disk, self.settings.user) if single else None

    def _act(self, what: str, service: str) -> None:
        self.log_file(service)
        if what in ("freeze", "thaw"):
            if (pid := self.pids().get(service)) is None:
                raise StackError(f"{service} does not run; `sinkbench up` starts it")
            (suspend if what == "freeze" else resume)(pid)
            return
        getattr(self.supervisor, what)(service)
        # Otherwise an immediate start would find a killed service running.
        deadline = time.monotonic() + GONE_SECONDS
        while what == "kill" and service in self.pids() and time.monotonic() < deadline:
            time.sleep(0.05)
