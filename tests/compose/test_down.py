"""The end of the containers, in a file that comes last: whatever follows would have to start them all again."""

from __future__ import annotations

import subprocess

from tests.support.commands import Run

from .composed import PROJECT, Raced


def test_down_leaves_no_container_and_no_network_but_the_data(raced: Raced, sinkbench: Run) -> None:
    assert sinkbench("down").returncode == 0
    for kind, left in (("ps -a", False), ("network ls", False), ("volume ls", True)):
        found = subprocess.run(
            ["docker", *kind.split(), "-q", "--filter", f"label=com.docker.compose.project={PROJECT}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert bool(found.strip()) is left, kind
