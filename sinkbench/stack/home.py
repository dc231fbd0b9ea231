"""The home folder of the local stack: its subfolders, their owner, and the services' environment."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import socket
import tempfile
from collections.abc import Mapping, Set
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.settings import Settings, reachable_by_others
from sinkbench.stack.assembly import shared_variables, specs
from sinkbench.stack.nodes import HOST, local_place, supervisor_config
from sinkbench.stack.processes import SERVICES_OF
from sinkbench.stack.securing import secure_processes
from sinkbench.stack.security import SERVICES as OF_PROCESSES
from sinkbench.stack.security import WITHOUT_SECURITY, Security, kept_security
from sinkbench.stack.spec import Place
from sinkbench.stack.tools import find_java, run


class Home:
    """The folder in which the local stack's services run, and the folder of their sockets."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.path = settings.home
        digest = hashlib.sha256(str(self.path).encode()).hexdigest()[:12]
        # A Unix socket's path has at most 107 characters; a checkout's path may be longer.
        self.runtime = Path(tempfile.gettempdir()) / f"sinkbench-{os.geteuid()}-{digest}"

    @property
    def socket(self) -> Path:
        return self.runtime / "supervisor.sock"

    @property
    def data(self) -> Path:
        """The services' data; a folder per set of nodes, since a cluster stores its membership in its data."""
        topology = self._settings.layout
        # The data contain users and passwords.
        kind = "data-secure" if self.is_secure else "data"
        if topology.is_single:
            return self.path / kind
        names = " ".join(node.name for node in topology.nodes if node.service != "connect")
        return self.path / f"{kind}-{hashlib.sha256(names.encode()).hexdigest()[:8]}"

    @property
    def is_secure(self) -> bool:
        return self._settings.security == "on"

    @property
    def security(self) -> Path:
        """Certificates and passwords of a secured stack: within the data, which also contain the passwords."""
        return self.data / "security"

    @property
    def supervisor_config(self) -> Path:
        return self.path / "supervisord.conf"

    @property
    def small_disk(self) -> Path:
        """The mount point of a trial's small disk; empty otherwise."""
        return self.path / "small-disk"

    def place(self, gone: Set[str] = frozenset(), primaries: Mapping[str, str] | None = None) -> Place:
        """Returns where the nodes are, with the current passwords; see `Place`."""
        security = None
        if self.is_secure:
            # A stack that was never started has no passwords, and no service that asks for one.
            security = kept_security(self.security) or Security(self.security, dict.fromkeys(OF_PROCESSES, ""))
        return local_place(self._settings, str(self.data), security, frozenset(gone), primaries)

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
                raise StackError(f"SINKBENCH_USER={user}: {made.stderr.strip()}; name an account that exists") from None
            account = pwd.getpwnam(user)
        if account.pw_uid == 0:
            raise StackError(f"SINKBENCH_USER={user}: Elasticsearch and PostgreSQL refuse to run as root; name another")
        if not reachable_by_others(self.path):
            raise StackError(f"{self.path}: the account {user} cannot enter it; set SINKBENCH_HOME to a folder it can")
        if not reachable_by_others(find_java()):
            raise StackError(f"{find_java()}: the account {user} cannot enter it; set JAVA_HOME to a JDK that it can")
        for folder in (self.data, self.small_disk):
            os.chown(folder, account.pw_uid, account.pw_gid)

    def secure(self) -> Security | None:
        """Makes the certificates, and passwords if there are none; None if the stack is not secured."""
        if not self.is_secure:
            return None
        account = pwd.getpwnam(self._settings.user) if os.geteuid() == 0 else None
        owner = None if account is None else (account.pw_uid, account.pw_gid)
        return secure_processes(self.security, owner)

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
        settings, port, place = self._settings, self._settings.port, self.place()
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
            **shared_variables(place),
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
        }
