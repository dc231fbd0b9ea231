"""Who holds a port that the stack needs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from sinkbench.errors import StackError
from sinkbench.stack.processes import SERVICES_OF, CpuClock, check_ports_free
from tests.support.present import present
from tests.support.waiting import until

LISTEN = """
import socket, time
port = socket.create_server(("127.0.0.1", 0))
print(port.getsockname()[1], flush=True)
time.sleep(60)
"""


@contextmanager
def listening(**environment: str) -> Iterator[int]:
    """A process that listens on a port; yields the port."""
    command = [sys.executable, "-c", LISTEN]
    with subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True) as process:
        yield int(present(process.stdout).readline())
        process.kill()


def refused(port: int) -> str:
    with pytest.raises(StackError) as error:
        check_ports_free([(port, "SINKBENCH_KAFKA_PORT", "kafka")])
    return str(error.value)


def test_a_service_of_a_stack_is_named_with_the_command_that_stops_it(tmp_path: Path) -> None:
    home = tmp_path / "büro test" / "var"
    with listening(**{SERVICES_OF: str(home)}) as port:
        assert f" of the stack in {home} (`env 'SINKBENCH_HOME={home}' sinkbench down` stops it)" in refused(port)
    with listening() as port:
        assert "of the stack" not in refused(port)


def test_a_child_that_began_a_moment_ago_is_counted_at_the_next_reading() -> None:
    script = "import subprocess, sys; input(); subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as process:
        children: list[psutil.Process] = []
        try:
            parent, clock = psutil.Process(process.pid), CpuClock(process.pid)
            assert clock.seconds() is not None
            present(process.stdin).write(b"\n")
            process.stdin.flush()
            children = until(parent.children)
            clock.seconds()
            assert clock.pids == [process.pid, children[0].pid]
        finally:
            for child in children:
                child.kill()
            process.kill()
