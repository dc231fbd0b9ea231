"""The home folder of the local stack: its nodes' addresses, its subfolders, and what its services are started with."""

import hashlib
import os
import pwd
import shutil
import socket
import tempfile
from collections.abc import Mapping, Set
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.settings import HOST, Settings, reachable_by_others
from sinkbench.stack.assembly import shared_variables, specs
from sinkbench.stack.certificates import secure_processes
from sinkbench.stack.processes import SERVICES_OF
from sinkbench.stack.registry import Place, ServiceSpec
from sinkbench.stack.security import SERVICES as OF_PROCESSES
from sinkbench.stack.security import WITHOUT_SECURITY, Security, kept_security
from sinkbench.stack.tools import find_java, run
from sinkbench.topology import Node

# The host in the quorum, as with a single broker: Kafka listens where Java resolves this name.
CONTROLLER_HOST = "localhost"
# The last of several stopping brokers may have no quorum to stop in order; a kill then loses nothing.
QUORUM_STOP_SECONDS = 15


def supervisor_config(head: str, place: Place) -> str:
    """Returns `head` with a program for every node. Workers are one program of several processes, and so one group."""
    sections = [
        _section(
            node.name,
            spec,
            {
                f"{spec.name.upper()}_DATA": f"%(ENV_SINKBENCH_DATA)s/{node.name}",
                **{name.upper(): str(place.address(node, name)[1]) for name in spec.ports},
                **spec.own(place, node),
            },
            place,
        )
        for spec in specs().values()
        for node in place.layout.of(spec.name)
        if spec.name != "connect"
    ]
    workers = _section("connect", specs()["connect"], {"CONNECT_WORKER": "%(process_num)d"}, place)
    workers = workers.replace("log/connect.log", "log/connect-%(process_num)d.log")
    several = "process_name = connect-%(process_num)d\nnumprocs = %(ENV_SINKBENCH_WORKERS)s\nnumprocs_start = 1\n"
    return "\n".join([head, *sections, workers + several])


def _section(name: str, spec: ServiceSpec, own: Mapping[str, str], place: Place) -> str:
    quorum = spec.name == "kafka" and len(place.layout.of("kafka")) > 1
    environment = ",".join(f'{variable}="{value}"' for variable, value in own.items())
    return f"""[program:{name}]
command = "%(ENV_SINKBENCH_HOME)s/services/{spec.script}"
environment = {environment}
user = %(ENV_SINKBENCH_USER)s
autostart = false
autorestart = false
startsecs = 0
stopsignal = {spec.stop_signal}
stopwaitsecs = {QUORUM_STOP_SECONDS if quorum else spec.stop_seconds}
stopasgroup = false
killasgroup = true
redirect_stderr = true
stdout_logfile = %(ENV_SINKBENCH_HOME)s/log/{name}.log
"""


class Home:
    """The folder in which the local stack's services run, and the folder of their sockets."""

    def __init__(self, settings: Settings, variables: Mapping[str, str] | None = None) -> None:
        """`variables` win over all others of the run scripts."""
        self._settings = settings
        self._variables = variables or {}
        self.path = settings.home
        digest = hashlib.sha256(str(self.path).encode()).hexdigest()[:12]
        # A Unix socket's path has at most 107 characters; a checkout's path may be longer.
        self.runtime = Path(tempfile.gettempdir()) / f"sinkbench-{os.geteuid()}-{digest}"
        self.socket = self.runtime / "supervisor.sock"
        self.supervisor_config = self.path / "supervisord.conf"
        self.small_disk = self.path / "small-disk"
        """The mount point of a trial's small disk; empty otherwise."""
        self.is_secure = settings.security == "on"
        # A folder per set of nodes, since a cluster stores its membership in its data, which contain passwords.
        kind, layout = "data-secure" if self.is_secure else "data", settings.layout
        names = " ".join(node.name for node in layout.nodes if node.service != "connect")
        suffix = "" if layout.is_single else f"-{hashlib.sha256(names.encode()).hexdigest()[:8]}"
        self.data = self.path / f"{kind}{suffix}"
        self.security = self.data / "security"

    def place(self, gone: Set[str] = frozenset(), primaries: Mapping[str, str] | None = None) -> Place:
        """Returns where the nodes are, with the current passwords; see `Place`."""
        settings, security = self._settings, None
        if self.is_secure:
            # A stack that was never started has no passwords, and no service that asks for one.
            security = kept_security(self.security) or Security(self.security, dict.fromkeys(OF_PROCESSES, ""))

        def address(node: Node, port: str) -> tuple[str, int]:
            return CONTROLLER_HOST if port == "kafka_controller_port" else HOST, settings.port(port, node.number)

        workers = settings.layout.of("connect")
        return Place(
            layout=settings.layout,
            address=address,
            data=str(self.data),
            security=security,
            workers={node.name: address(node, "connect_port") for node in workers},
            metrics={node.name: address(node, "connect_metrics_port") for node in workers},
            gone=frozenset(gone),
            primaries=primaries or {},
        )

    def prepare(self) -> None:
        """Creates the folders and, as root, the account. Raises StackError if the services could not use them."""
        try:
            for folder in (self.path, self.data, self.path / "log", self.small_disk, self.runtime):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StackError(
                f"{error.filename}: {error.strerror}; set SINKBENCH_HOME to a folder you can write"
            ) from None
        self.runtime.chmod(0o700)
        if self.runtime.stat().st_uid != os.geteuid():
            raise StackError(f"{self.runtime}: belongs to another account; remove it")
        if os.geteuid() == 0:
            self._prepare_account()

    def _prepare_account(self) -> None:
        user = self._settings.user
        try:
            account = pwd.getpwnam(user)
        except KeyError:
            made = run(["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", user])
            if made.returncode != 0:
                said = made.stderr.strip()
                raise StackError(f"SINKBENCH_USER={user}: {said}; name an account that exists") from None
            account = pwd.getpwnam(user)
        if account.pw_uid == 0:
            raise StackError(f"SINKBENCH_USER={user}: Elasticsearch and PostgreSQL refuse to run as root; name another")
        for path, fix in ((self.path, "SINKBENCH_HOME to a folder"), (find_java(), "JAVA_HOME to a JDK")):
            if not reachable_by_others(path):
                raise StackError(f"{path}: the account {user} cannot enter it; set {fix} that it can")
        for folder in (self.data, self.small_disk):
            os.chown(folder, account.pw_uid, account.pw_gid)

    def secure(self) -> Security | None:
        """Makes the certificates, and passwords if there are none; None if the stack is not secured."""
        if not self.is_secure:
            return None
        # `prepare` has made the account.
        account = pwd.getpwnam(self._settings.user) if os.geteuid() == 0 else None
        return secure_processes(self.security, None if account is None else (account.pw_uid, account.pw_gid))

    def stage(self, checkout: Path) -> None:
        """Copies run scripts and configurations, since the services' account may not be able to enter `checkout`."""
        staged = self.path / "services"
        shutil.rmtree(staged, ignore_errors=True)
        for name in {Path(spec.script).parts[0] for spec in specs().values()}:
            shutil.copytree(checkout / name, staged / name, ignore=shutil.ignore_patterns("target", "pom.xml"))
        for path in [staged, *staged.rglob("*")]:
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        head = (checkout / "local" / "supervisord.conf").read_text(encoding="utf-8")
        self.supervisor_config.write_text(supervisor_config(head, self.place()), encoding="utf-8")

    def environment(self, programs: Mapping[str, str], security: Security | None = None) -> dict[str, str]:
        """Returns the variables of run scripts and supervisord; only PATH comes from the caller's environment."""
        settings, port = self._settings, self._settings.port
        found = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "JAVA_HOME": str(find_java()),
            SERVICES_OF: str(self.path),
            "SINKBENCH_HOME": str(self.path),
            "SINKBENCH_DATA": str(self.data),
            "SINKBENCH_SOCKET": str(self.socket),
            "SINKBENCH_USER": settings.user,
            "SINKBENCH_WORKERS": str(settings.workers),
            "JAVA_OPTIONS": settings.java_options,
        }
        for spec in specs().values():
            found |= {f"{spec.name.upper()}_LISTEN": settings.listen, **spec.programs()}
        return {
            **found,
            **shared_variables(self.place()),
            **programs,
            **{f"{service.upper()}_HEAP": heap for service, heap in settings.layout.heaps().items()},
            # Remote clients must reach it by this name.
            "KAFKA_ADVERTISED_HOST": HOST if settings.listen == HOST else socket.gethostname(),
            "CONNECT_DATA": str(self.data / "connect"),
            "CONNECT_USER_PLUGINS": str(self.path / "services" / "connect" / "plugins"),
            "CONNECT_ADVERTISED_HOST": HOST,
            # The workers' metrics require no password.
            "CONNECT_METRICS_LISTEN": HOST,
            "CONNECT_BASE_PORT": str(port("connect_port")),
            "CONNECT_METRICS_BASE_PORT": str(port("connect_metrics_port")),
            "CONNECT_REBALANCE_DELAY_MS": str(settings.connect_rebalance_delay_ms),
            **(WITHOUT_SECURITY if security is None else security.environment),
            **self._variables,
        }
