"""The command `docker compose`: its command lines, its settings, and what its output says."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess

from sinkbench.errors import StackError
from sinkbench.settings import Settings
from sinkbench.stack.containers import SERVICES
from sinkbench.stack.tools import run

__all__ = [
    "DOWN",
    "LEAST_COMPOSE",
    "READY_SECONDS",
    "ComposeCli",
    "compose_command",
    "end_of_build",
    "last_line",
    "too_old",
    "up_arguments",
]

READY_SECONDS = 240
# The first with `up --wait` that waits for health, and with the attribute `attach`.
LEAST_COMPOSE = "2.20"

DOWN = ("down", "--remove-orphans")
"""Stops and removes all containers, the controller's too; the volumes stay."""


def compose_command(checkout: Path, *arguments: str) -> list[str]:
    """The command line of `docker compose` for the project in the folder `checkout`."""
    return ["docker", "compose", "--project-directory", str(checkout), "--progress", "plain", *arguments]


def up_arguments(scale: Mapping[str, int]) -> list[str]:
    """Starts all services but the controller, each with its number of containers in `scale`, and waits for health."""
    # Without --scale compose would go back to the numbers in the file.
    scaled = [part for service, count in scale.items() for part in ("--scale", f"{service}={count}")]
    return ["up", "--detach", "--wait", "--wait-timeout", str(READY_SECONDS), *scaled, *SERVICES]


def too_old(version: str) -> bool:
    """Whether this version of compose, as it prints it, lacks what docker-compose.yml needs."""

    def parts(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)[:2]]

    return parts(version) < parts(LEAST_COMPOSE)


def end_of_build(output: str, lines: int = 15) -> str:
    """The step of a build that failed, and the last `lines` lines that it printed."""
    found = output.strip().splitlines()
    steps = [number for number, line in enumerate(found) if line.startswith(" > [")]
    if not steps:
        return "\n".join(found[-lines:])
    printed = list(itertools.takewhile(lambda line: not line.startswith("------"), found[steps[-1] + 1 :]))
    return "\n".join([found[steps[-1]], *printed[-lines:]])


def last_line(output: str) -> str:
    """The last line of a command's output, for a message."""
    lines = output.strip().splitlines()
    return lines[-1].strip() if lines else "no message"


class ComposeCli:
    """The command `docker compose` for the project in one folder, under the settings in force."""

    def __init__(self, settings: Settings, checkout: Path) -> None:
        """Raises StackError if the command is missing or too old."""
        self._settings = settings
        self._checkout = checkout
        if shutil.which("docker") is None:
            raise StackError("the command docker is missing; run scripts/docker-bootstrap, or install Docker's client")
        done = run(["docker", "compose", "version", "--short"])
        if done.returncode != 0:
            raise StackError("the command docker has no compose; run scripts/docker-bootstrap, or install its plugin")
        if too_old(done.stdout):
            raise StackError(
                f"docker compose is {done.stdout.strip()}, {LEAST_COMPOSE} or newer is needed (older ones know no "
                "`attach` of a service); upgrade it"
            )

    def run(self, *arguments: str) -> CompletedProcess[str]:
        """Runs `docker compose` with these arguments to its end."""
        return run(compose_command(self._checkout, *arguments), self._environment())

    def project(self) -> str:
        """The name of the project. Raises StackError if docker-compose.yml cannot be read."""
        done = self.run("config", "--format", "json")
        if done.returncode != 0:
            raise StackError(f"{self._checkout / 'docker-compose.yml'}: {last_line(done.stderr)}")
        return str(json.loads(done.stdout)["name"])

    def _environment(self) -> dict[str, str]:
        """The caller's environment and the settings in force, so that `.env` and the port offset count here, too."""
        offset = self._settings.port_offset
        ours = {"home", "dist", "user", "stack", "plan", "thresholds"}
        given = {
            f"SINKBENCH_{name.upper()}": str(value + offset if name.endswith("_port") else value)
            for name, value in self._settings.model_dump(exclude=ours).items()
        }
        return {**os.environ, **given}
