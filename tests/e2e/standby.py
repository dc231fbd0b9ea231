"""A PostgreSQL that follows the one of the tests' stack."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from sinkbench.stack.local import LocalStack
from sinkbench.stack.tools import find_postgres
from tests.support.ports import free_ports

__all__ = ["standby"]


@contextmanager
def standby(stack: LocalStack) -> Iterator[int]:
    """A server that follows the stack's own, and takes no writes; its port."""
    programs, (port,) = find_postgres(), free_ports(1)
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        account = {"user": stack.settings.user, "group": stack.settings.user, "extra_groups": []}
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp())
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        if account:
            shutil.chown(folder, account["user"], account["group"])
        data = folder / "data"
        primary = make_conninfo(stack.endpoints.sinks["postgres"].address, dbname="")
        copy = [str(programs / "pg_basebackup"), "-d", primary, "-D", str(data), "-R", "--checkpoint=fast"]
        subprocess.run(copy, check=True, capture_output=True, cwd="/", **account)
        options = [f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories="]
        command = [str(programs / "postgres"), "-D", str(data), *(part for each in options for part in ("-c", each))]
        server = subprocess.Popen(command, cwd="/", stderr=subprocess.DEVNULL, **account)
        opened.callback(server.wait, 20)
        opened.callback(server.send_signal, signal.SIGINT)
        address = make_conninfo(stack.endpoints.sinks["postgres"].address, port=port)
        deadline = time.monotonic() + 20
        while True:
            try:
                psycopg.connect(address, connect_timeout=2).close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield port
