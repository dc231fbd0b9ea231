"""The end of the containers, in a file that comes last: whatever follows would have to start them all again."""

from __future__ import annotations

import subprocess
from pathlib import Path

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


def test_a_container_that_the_engine_cannot_start_says_why(raced: Raced, sinkbench: Run, checkout: Path) -> None:
    own = checkout / "docker-compose.override.yml"
    # More than any kernel lets a process have.
    own.write_text("services: {postgres: {ulimits: {nofile: 2000000000}}}\n")
    try:
        assert sinkbench("down").returncode == 0
        failed = sinkbench("up", timeout=600)
    finally:
        own.unlink()
        sinkbench("down")
    assert failed.returncode == 2
    assert "sinkbench: postgres could not be started: " in failed.stderr
    assert "rlimit" in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
