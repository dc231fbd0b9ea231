"""The driver of the local stack: every service a process of this machine, under supervisord, on 127.0.0.1."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings, reachable_by_others
from sinkbench.stack import Allowance, Endpoints, Say, ServiceState, own_addresses
from sinkbench.stack.distributions import Distributions, ensure_distributions
from sinkbench.stack.processes import CpuClock, check_ports_free, command_line, end_leftovers, machine_cpu
from sinkbench.stack.readiness import Check, checks
from sinkbench.stack.supervisor import Supervisor
from sinkbench.stack.tools import find_java, find_pgbouncer, find_postgres

__all__ = ["LocalStack", "log_tail"]

HOST = "127.0.0.1"
# Everything listens on loopback only; the name is what a user types into psql.
ACCOUNT = "sinkbench"
INDEX = "tides"
READY_SECONDS = 120.0
POLL_SECONDS = 0.25
LOG_LINES = 15
SERVICE_FOLDERS = ("kafka", "connect", "elasticsearch", "postgres")
PLUGINS = frozenset(
    {"org.apache.camel.kafkaconnector.CamelSinkConnector", "io.debezium.connector.jdbc.JdbcSinkConnector"}
)
# A worker needs the broker to start at all; PgBouncer would start, but answer with errors.
NEEDS = {"connect": "kafka", "pgbouncer": "postgres"}


def log_tail(path: Path, lines: int = LOG_LINES) -> str:
    """The last `lines` lines of a log, without reading more of it than needed; empty if there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 400 * lines))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


class LocalStack:
    """The stack of one home folder."""

    name = "local"

    def __init__(self, settings: Settings, checkout: Path = CHECKOUT) -> None:
        self.settings = settings
        self.home = settings.home
        self.checkout = checkout
        digest = hashlib.sha256(str(self.home).encode()).hexdigest()[:12]
        # A Unix socket's path holds 107 characters at most, and a checkout may lie deeper than that.
        self._runtime = Path(tempfile.gettempdir()) / f"sinkbench-{os.geteuid()}-{digest}"
        self._supervisor = Supervisor(checkout / "local" / "supervisord.conf", self._runtime / "supervisor.sock")
        self._clocks: dict[str, CpuClock] = {}

    @property
    def workers(self) -> int:
        return self.settings.workers

    @property
    def endpoints(self) -> Endpoints:
        port = self.settings.port
        names = [f"connect-{n + 1}" for n in range(self.workers)]
        rest = {name: f"{HOST}:{port('connect_port') + n}" for n, name in enumerate(names)}
        login = f"host={HOST} user={ACCOUNT} password={ACCOUNT}"
        return Endpoints(
            kafka=f"{HOST}:{port('kafka_port')}",
            connect={name: f"http://{address}" for name, address in rest.items()},
            worker_ids={address: name for name, address in rest.items()},
            elasticsearch=f"http://{HOST}:{port('elasticsearch_port')}",
            elasticsearch_index=INDEX,
            postgres=f"{login} port={port('postgres_port')} dbname={ACCOUNT}",
            pgbouncer_admin=f"{login} port={port('pgbouncer_port')} dbname=pgbouncer",
            connect_metrics={
                name: f"http://{HOST}:{port('connect_metrics_port') + n}/metrics" for n, name in enumerate(names)
            },
        )

    @property
    def lock_file(self) -> Path:
        return self.home / "race.lock"

    @property
    def unmeasured(self) -> tuple[str, ...]:
        return ()

    def addresses(self) -> dict[str, str]:
        return own_addresses(self.endpoints, ACCOUNT)

    def log_file(self, service: str) -> Path:
        """Where the service's output is kept. Raises StackError for a service that there is not."""
        if service not in self.service_names():
            raise StackError(f"{service}: no such service; there are {', '.join(self.service_names())}")
        return self.home / "log" / f"{service}.log"

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        path = self.log_file(service)
        if not path.exists():
            raise StackError(f"{service} has no log yet; `sinkbench up` starts it")
        return ["tail", "-n", str(lines), *(["-F"] if follow else []), str(path)]

    def service_names(self) -> list[str]:
        """Every service, in starting order."""
        return list(checks(self.endpoints))

    def up(self, say: Say) -> None:
        """Starts what is not running and returns when all of it is ready; a second call changes nothing."""
        java, postgres, pgbouncer = find_java(), find_postgres(), find_pgbouncer()
        self._prepare_folders()
        with self._lock(say):
            if self._supervisor.answers():
                self._refuse_other_settings()
                self._start_missing(say)
            else:
                end_leftovers(self.home)
                check_ports_free(self.settings.ports())
                distributions = ensure_distributions(self.checkout, self.settings.dist, say)
                self._stage_services()
                try:
                    self._supervisor.launch(self._environment(distributions, java, postgres, pgbouncer))
                    (self.home / "running.env").write_text(self.settings.show())
                    self._start_missing(say)
                except BaseException:
                    self.down()
                    raise

    def install(self, say: Say) -> None:
        """Fetches the programs that come from Maven, if they are not there."""
        self._prepare_folders()
        with self._lock(say):
            ensure_distributions(self.checkout, self.settings.dist, say)

    def down(self) -> None:
        """Stops everything, also what a supervisord that was killed has left behind."""
        self._supervisor.shutdown()
        end_leftovers(self.home)
        self._clocks.clear()
        shutil.rmtree(self._runtime, ignore_errors=True)
        (self.home / "running.env").unlink(missing_ok=True)

    def running(self) -> bool:
        """Whether the stack was started and not stopped since (single services may be dead)."""
        return self._supervisor.answers()

    def states(self) -> list[ServiceState]:
        programs = {program.name: program for program in self._supervisor.programs()}
        states = []
        for service in self.service_names():
            program = programs.get(service)
            if program is None or program.state == "STOPPED":
                states.append(ServiceState(service, "stopped", None, ""))
            elif program.running:
                states.append(ServiceState(service, "running", program.pid, program.detail))
            else:
                states.append(ServiceState(service, "dead", None, program.detail))
        return states

    def kill(self, service: str) -> None:
        self._supervisor.kill(service)

    def stop(self, service: str) -> None:
        self._supervisor.stop(service)

    def start(self, service: str) -> None:
        ready = checks(self.endpoints, PLUGINS)
        self.log_file(service)
        self._clocks.pop(service, None)
        self._supervisor.start(service)
        self._wait_until_ready({service: ready[service]}, lambda line: None)

    def troubles(self) -> dict[str, str]:
        return {}

    def cpu_seconds(self) -> dict[str, float | None]:
        services = self.service_names()
        if any(service not in self._clocks for service in services):
            for program in self._supervisor.programs():
                known = self._clocks.get(program.name)
                if program.running and (known is None or known.pid != program.pid):
                    self._clocks[program.name] = CpuClock(program.pid)
        return {name: clock.seconds() if (clock := self._clocks.get(name)) else None for name in services}

    @property
    def cpu_limits(self) -> dict[str, float]:
        return {}

    def machine_cpu(self) -> tuple[float, int] | None:
        return machine_cpu()

    def free_bytes(self) -> int | None:
        existing = self.home
        while not existing.exists():
            existing = existing.parent
        return shutil.disk_usage(existing).free

    @property
    def data_path(self) -> Path | None:
        return self.home

    def allowances(self) -> dict[str, Allowance]:
        return {}

    def command_lines(self) -> dict[str, list[str]]:
        seen = {state.name: command_line(state.pid) for state in self.states() if state.pid is not None}
        return {name: words for name, words in seen.items() if words}

    # --- starting -----------------------------------------------------------------------------------------------

    def _prepare_folders(self) -> None:
        try:
            for folder in (self.home, self.home / "data", self.home / "log", self._runtime):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StackError(
                f"{error.filename}: {error.strerror}; set SINKBENCH_HOME to a folder you can write"
            ) from None
        self._runtime.chmod(0o700)
        if self._runtime.stat().st_uid != os.geteuid():
            raise StackError(f"{self._runtime}: belongs to another account; remove it")
        if os.geteuid() == 0:
            self._prepare_account()

    def _prepare_account(self) -> None:
        """As root: makes sure that the account for the services exists and owns their data."""
        user = self.settings.user
        try:
            account = pwd.getpwnam(user)
        except KeyError:
            made = subprocess.run(
                ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", user],
                capture_output=True,
                text=True,
                check=False,
            )
            if made.returncode != 0:
                raise StackError(f"SINKBENCH_USER={user}: {made.stderr.strip()}; name an account that exists") from None
            account = pwd.getpwnam(user)
        if account.pw_uid == 0:
            raise StackError(f"SINKBENCH_USER={user}: Elasticsearch and PostgreSQL refuse to run as root; name another")
        if not reachable_by_others(self.home):
            raise StackError(f"{self.home}: the account {user} cannot enter it; set SINKBENCH_HOME to a folder it can")
        if not reachable_by_others(find_java()):
            raise StackError(f"{find_java()}: the account {user} cannot enter it; set JAVA_HOME to a JDK that it can")
        os.chown(self.home / "data", account.pw_uid, account.pw_gid)

    def _stage_services(self) -> None:
        """Copies the run scripts and configurations to the home folder, which the services' account can enter."""
        staged = self.home / "services"
        shutil.rmtree(staged, ignore_errors=True)
        for name in SERVICE_FOLDERS:
            shutil.copytree(self.checkout / name, staged / name, ignore=shutil.ignore_patterns("target", "pom.xml"))
        for path in [staged, *staged.rglob("*")]:
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)

    def _environment(self, programs: Distributions, java: Path, postgres: Path, pgbouncer: Path) -> dict[str, str]:
        """What the run scripts and `local/supervisord.conf` read; nothing of the caller's own environment but PATH."""
        port = self.settings.port
        data = self.home / "data"
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "JAVA_HOME": str(java),
            "SINKBENCH_SERVICES_OF": str(self.home),
            "SINKBENCH_HOME": str(self.home),
            "SINKBENCH_SOCKET": str(self._supervisor.socket),
            "SINKBENCH_USER": self.settings.user,
            "SINKBENCH_WORKERS": str(self.workers),
            "KAFKA_LIBS": str(programs.kafka_libs),
            "KAFKA_DATA": str(data / "kafka"),
            "KAFKA_LISTEN": HOST,
            "KAFKA_ADVERTISED_HOST": HOST,
            "KAFKA_PORT": str(port("kafka_port")),
            "KAFKA_CONTROLLER_PORT": str(port("kafka_controller_port")),
            "KAFKA_HEAP": self.settings.kafka_heap,
            "KAFKA_BOOTSTRAP": self.endpoints.kafka,
            "CONNECT_PLUGINS": str(programs.plugins),
            "CONNECT_USER_PLUGINS": str(self.home / "services" / "connect" / "plugins"),
            "CONNECT_DATA": str(data / "connect"),
            "CONNECT_LISTEN": HOST,
            "CONNECT_ADVERTISED_HOST": HOST,
            "CONNECT_BASE_PORT": str(port("connect_port")),
            "CONNECT_METRICS_BASE_PORT": str(port("connect_metrics_port")),
            "CONNECT_METRICS_AGENT": str(programs.metrics_agent),
            "CONNECT_HEAP": self.settings.connect_heap,
            "ELASTICSEARCH_HOME": str(programs.elasticsearch),
            "ELASTICSEARCH_DATA": str(data / "elasticsearch"),
            "ELASTICSEARCH_LISTEN": HOST,
            "ELASTICSEARCH_PORT": str(port("elasticsearch_port")),
            "ELASTICSEARCH_TRANSPORT_PORT": str(port("elasticsearch_transport_port")),
            "ELASTICSEARCH_HEAP": self.settings.elasticsearch_heap,
            "ELASTICSEARCH_HOSTS": f"{HOST}:{port('elasticsearch_port')}",
            "ELASTICSEARCH_INDEX": INDEX,
            "POSTGRES_BIN": str(postgres),
            "POSTGRES_DATA": str(data / "postgres"),
            "POSTGRES_LISTEN": HOST,
            "POSTGRES_HOST": HOST,
            "POSTGRES_PORT": str(port("postgres_port")),
            "POSTGRES_DB": ACCOUNT,
            "POSTGRES_USER": ACCOUNT,
            "POSTGRES_PASSWORD": ACCOUNT,
            "PGBOUNCER_BIN": str(pgbouncer),
            "PGBOUNCER_DATA": str(data / "pgbouncer"),
            "PGBOUNCER_LISTEN": HOST,
            "PGBOUNCER_HOST": HOST,
            "PGBOUNCER_PORT": str(port("pgbouncer_port")),
        }

    def _start_missing(self, say: Say) -> None:
        dead = {state.name for state in self.states() if state.state != "running"}
        self._wait_until_ready(checks(self.endpoints, PLUGINS), say, to_start=dead)

    def _wait_until_ready(self, waiting: Mapping[str, Check], say: Say, to_start: Set[str] = frozenset()) -> None:
        """Waits for services by their checks; each of `to_start` is started when what it needs is ready.

        Raises:
            StackError: one dies, or is not ready in time.
        """
        started: set[str] = set()
        ready: set[str] = set()
        reasons: dict[str, str] = {}
        deadline = time.monotonic() + READY_SECONDS
        with ThreadPoolExecutor(max_workers=len(waiting)) as pool:
            while True:
                for service in to_start - started:
                    if NEEDS.get(service.split("-")[0], "") in {"", *ready}:
                        self._clocks.pop(service, None)
                        self._supervisor.start(service)
                        started.add(service)
                asked = [service for service in waiting if service not in ready and service not in to_start - started]
                for service, reason in zip(asked, pool.map(lambda s: waiting[s](), asked), strict=True):
                    if reason is None:
                        ready.add(service)
                        say(f"{service} is ready")
                    else:
                        reasons[service] = reason
                if ready == set(waiting):
                    return
                self._fail_if_dead(set(asked) - ready)
                if time.monotonic() > deadline:
                    late = sorted(set(waiting) - ready)
                    raise StackError(
                        f"{late[0]} was not ready in {READY_SECONDS:.0f} s: {reasons.get(late[0], 'not started')}\n"
                        + log_tail(self.log_file(late[0]))
                    )
                time.sleep(POLL_SECONDS)

    def _fail_if_dead(self, starting: set[str]) -> None:
        for state in self.states():
            if state.name in starting and state.state != "running":
                raise StackError(
                    f"{state.name} died while starting ({state.detail}); the end of its log:\n"
                    + log_tail(self.log_file(state.name))
                )

    def _refuse_other_settings(self) -> None:
        try:
            running = (self.home / "running.env").read_text().splitlines()
        except FileNotFoundError:
            return
        for was, asked in zip(running, self.settings.show().splitlines(), strict=False):
            if was != asked:
                raise StackError(f"the stack runs with {was}, asked is {asked}; run `sinkbench down` first")

    @contextmanager
    def _lock(self, say: Say) -> Iterator[None]:
        """One `up` at a time; the kernel drops the lock with its holder, however that ends."""
        with (self.home / "up.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another `sinkbench up` of this stack is going on; waiting for it")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
