"""The driver of the local stack: processes of this machine under supervisord, on 127.0.0.1."""

import fcntl
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path

import psutil

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.stack import Endpoints, Facts, Faults, Say, ServiceState, Stack, Usage, processes
from sinkbench.stack.assembly import LOG_LINES, await_ready, checks, endpoints_of, proxy_targets, specs
from sinkbench.stack.cores import can_hold, held_to, release
from sinkbench.stack.home import Home
from sinkbench.stack.meter import Meter
from sinkbench.stack.profiler import Profiler
from sinkbench.stack.proxyserver import Proxies
from sinkbench.stack.registry import Place, Roles
from sinkbench.stack.smalldisk import SmallDisks, unmount_small_disk
from sinkbench.stack.tools import ensure_distributions, find_java, run
from sinkbench.topology import Topology, check_memory, service_of

# Settings, as `Settings.show` prints them, that no process of the stack reads.
OF_NO_SERVICE = re.compile(r"SINKBENCH_(STACK|PLAN|THRESHOLDS|LIVE_PORT|[A-Z]+_MEMORY)=")
# For a small stack, and for each further node.
READY_SECONDS, MORE_SECONDS, USUAL_NODES = 120.0, 10.0, 7
# The process of a killed service ends at once, except for pending writes in the kernel.
GONE_SECONDS = 10.0
PLUGINS = (
    "io.debezium.connector.jdbc.JdbcSinkConnector",
    "org.apache.camel.kafkaconnector.CamelSinkConnector",
    "sinkbench.reference.ElasticsearchBulkConnector",
    "sinkbench.reference.PostgresCopyConnector",
)
VARIABLES = frozenset(
    {
        *("JAVA_HOME", "JAVA_OPTIONS", "KAFKA_LIBS", "KAFKA_HEAP", "KAFKA_SETTINGS", "PGBOUNCER_BIN", "POSTGRES_BIN"),
        *("CONNECT_HEAP", "CONNECT_PLUGINS", "CONNECT_SETTINGS", "POSTGRES_SETTINGS"),
        *("ELASTICSEARCH_HEAP", "ELASTICSEARCH_HOME", "ELASTICSEARCH_SETTINGS"),
    }
)


# Folders of siblings in a stack's home, and how far their ports are from each other.
SIBLING, SIBLING_PORTS = "sibling-", 300


class LocalStack(Stack):
    name = "local"
    variables = VARIABLES

    def __init__(
        self, settings: Settings, checkout: Path = CHECKOUT, variables: Mapping[str, str] | None = None
    ) -> None:
        """`variables` are those of a sibling. A stack that is up has as many workers as it was started with."""
        home = Home(settings, variables)
        self._supervisor = processes.Supervisor(home.supervisor_config, home.socket)
        there = [each for each in self._supervisor.programs() if service_of(each.name) == "connect"]
        self.settings = settings = settings.with_workers(len(there))
        self._is_sibling = variables is not None
        self.checkout = checkout
        self.home = settings.home
        self._home = Home(settings, variables)
        converter = settings.dist / "jfr-converter" / "jfr-converter.jar"
        self.profiler: Profiler | None = Profiler(self._supervisor.pids, converter)
        self._names = [node.name for node in settings.layout.nodes]
        self._meter = Meter(self._names, self._supervisor.pids, self.home)

    @property
    def workers(self) -> int:
        return self.settings.workers

    @property
    def layout(self) -> Topology:
        return self.settings.layout

    @property
    def lock_file(self) -> Path:
        return self.home / "race.lock"

    def start_id(self) -> str | None:
        return self._supervisor.start_id()

    @cached_property
    def _roles(self) -> dict[str, Roles]:
        return {
            spec.name: spec.roles(self._home.place, self._supervisor)
            for spec in specs().values()
            if spec.roles is not None and len(self.layout.of(spec.name)) > 1
        }

    def _place(self, gone: Set[str] = frozenset()) -> Place:
        """Returns where the nodes are now; no other node waits for those in `gone`."""
        return self._home.place(gone, {service: roles.primary for service, roles in self._roles.items()})

    @property
    def endpoints(self) -> Endpoints:
        return endpoints_of(self._place())

    def services(self) -> list[ServiceState]:
        there = {each.name: each for each in self._supervisor.programs()}
        return [there.get(name) or ServiceState(name, "stopped", None, "") for name in self._names]

    def usage(self) -> Usage:
        return self._meter.read()

    def facts(self) -> Facts:
        seen = {name: processes.command_line(pid) for name, pid in self._supervisor.pids().items()}
        return Facts(command_lines={name: words for name, words in seen.items() if words}, data_path=self.home)

    def _log_file(self, service: str) -> Path:
        """Raises StackError for an unknown service."""
        if service not in self._names:
            raise StackError(f"{service}: no such service; there are {', '.join(self._names)}")
        return self.home / "log" / f"{service}.log"

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        path = self._log_file(service)
        if not path.exists():
            raise StackError(f"{service} has no log yet; `sinkbench up` starts it")
        return ["tail", "-n", str(lines), *(["-F"] if follow else []), str(path)]

    def log_tail(self, service: str, lines: int) -> str:
        return run(["tail", "-n", str(lines), str(self._log_file(service))]).stdout.rstrip()

    def up(self, say: Say) -> None:
        # First, since a missing program is the most common failure.
        find_java()
        for spec in specs().values():
            spec.programs()
        self._home.prepare()
        with self._lock(say):
            if self.start_id() is not None:
                self._refuse_other_settings()
                self._thaw_all()
                self._start_missing(say)
                return
            processes.end_leftovers(self.home)
            _end_siblings(self)
            processes.check_ports_free(self.settings.ports())
            check_memory(self.layout, psutil.virtual_memory().available)
            programs = ensure_distributions(self.checkout, self.settings.dist, say)
            self._home.stage(self.checkout)
            security = self._home.secure()
            try:
                self._supervisor.launch(self._home.environment(programs, security))
                (self.home / "running.env").write_text(self.settings.show(), encoding="utf-8")
                self._start_missing(say)
            except BaseException:
                self.down()
                raise

    def install(self, say: Say) -> None:
        self._home.prepare()
        with self._lock(say):
            ensure_distributions(self.checkout, self.settings.dist, say)

    def sibling(self, number: int, variables: Mapping[str, str]) -> Stack:
        offset = self.settings.port_offset + SIBLING_PORTS * number
        changed = {"home": self.home / f"{SIBLING}{number}", "port_offset": offset}
        return LocalStack(self.settings.model_copy(update=changed), self.checkout, variables)

    def down(self) -> None:
        # A frozen process does not react to a request to end.
        self._thaw_all()
        self._supervisor.shutdown()
        # A killed supervisord leaves its services running.
        processes.end_leftovers(self.home)
        unmount_small_disk(self._home.small_disk)
        shutil.rmtree(self._home.runtime, ignore_errors=True)
        (self.home / "running.env").unlink(missing_ok=True)
        _end_siblings(self)
        if self._is_sibling:
            shutil.rmtree(self.home, ignore_errors=True)

    def _refuse_other_settings(self) -> None:
        with suppress(FileNotFoundError):
            running = (self.home / "running.env").read_text(encoding="utf-8", errors="replace").splitlines()
            for was, asked in zip(running, self.settings.show().splitlines(), strict=False):
                if was != asked and not OF_NO_SERVICE.match(asked):
                    raise StackError(f"the stack runs with {was}, asked is {asked}; run `sinkbench down` first")

    @contextmanager
    def _lock(self, say: Say) -> Iterator[None]:
        """One `up` at a time. The kernel releases the lock when its process ends, however that ends."""
        with (self.home / "up.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another `sinkbench up` of this stack is going on; waiting for it")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _thaw_all(self) -> None:
        """Resumes all processes that a killed controller left frozen, or held to a share of the cores."""
        pids = self._supervisor.pids().values()
        release(pids)
        for pid in pids:
            processes.resume(pid)

    def _start_missing(self, say: Say) -> None:
        """Starts every node that does not run, and waits until all are ready. Raises StackError."""
        for roles in self._roles.values():
            roles.finish()
        self._wait(self._names, self._place(), self.dead().keys(), say)
        for roles in self._roles.values():
            roles.restore(say)

    def _wait(self, names: Collection[str], place: Place, dead: Collection[str], say: Say) -> None:
        """Waits until these nodes are ready. Starts each of `dead` once the nodes that it needs are ready."""
        asks, unstarted = checks(endpoints_of(place), PLUGINS), set(dead)

        def start(ready: Set[str]) -> Set[str]:
            for name in sorted(unstarted):
                node = place.layout.node(name)
                if specs()[node.service].needs(place, node) <= ready:
                    self._supervisor.start(name)
                    unstarted.discard(name)
            return unstarted

        seconds = READY_SECONDS + MORE_SECONDS * max(len(names) - USUAL_NODES, 0)
        await_ready(names, lambda: asks, self.dead, lambda name: self.log_tail(name, LOG_LINES), seconds, say, start)

    @property
    def faults(self) -> Faults:
        # `down` finds the proxy by this variable.
        found = {processes.SERVICES_OF: str(self.home)}

        def hold(service: str, cores: float | None, memory_bytes: int | None) -> AbstractContextManager[None]:
            pids = [pid for name, pid in self._supervisor.pids().items() if service_of(name) == service]
            return held_to(pids, cores, memory_bytes)

        return Faults(
            self._act,
            # A node that was started alone does not wait for nodes that do not run.
            lambda one: self._wait([one], self._place(self.dead().keys() - {one}), (), lambda _: None),
            proxies=Proxies(self.checkout, self.settings, lambda: proxy_targets(self._home.place()), environment=found),
            # A replica would write to the same small disk.
            small_disks=lambda sink: (
                SmallDisks(self._home.small_disk, self.settings.user) if len(self.layout.of(sink)) == 1 else None
            ),
            promotion=self._roles.get,
            hold=hold if can_hold() else None,
        )

    def _act(self, what: str, service: str) -> None:
        self._log_file(service)
        if what in ("freeze", "thaw"):
            if (pid := self._supervisor.pids().get(service)) is None:
                raise StackError(f"{service} does not run; `sinkbench up` starts it")
            (processes.suspend if what == "freeze" else processes.resume)(pid)
            return
        getattr(self._supervisor, what)(service)
        # Otherwise an immediate start would find a killed service running.
        deadline = time.monotonic() + GONE_SECONDS
        while what == "kill" and service in self._supervisor.pids() and time.monotonic() < deadline:
            time.sleep(0.05)


def _end_siblings(stack: LocalStack) -> None:
    """Stops and removes what a killed race has left."""
    for home in stack.home.glob(f"{SIBLING}*"):
        LocalStack(stack.settings.model_copy(update={"home": home}), stack.checkout, {}).down()
