"""Who holds a port that the stack needs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sinkbench.errors import StackError
from sinkbench.stack.processes import SERVICES_OF, check_ports_free

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
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


def refused(port: int) -> str:
    with pytest.raises(StackError) as error:
        check_ports_free([(port, "SINKBENCH_KAFKA_PORT", "kafka")])
    return str(error.value)


def test_a_service_of_a_stack_whose_checkout_was_moved_is_told_with_the_command_that_stops_it(tmp_path: Path) -> None:
    gone, there = tmp_path / "büro test" / "var", tmp_path
    with listening(**{SERVICES_OF: str(gone)}) as port:
        said = refused(port)
    assert f" of the stack in {gone}, which was moved or deleted (`env 'SINKBENCH_HOME={gone}' sinkbench down`" in said
    with listening(**{SERVICES_OF: str(there)}) as port:
        assert f" of the stack in {there} (`env SINKBENCH_HOME={there} sinkbench down` stops it)" in refused(port)
    with listening() as port:
        assert "of the stack" not in refused(port)
