"""The command `docker compose`: its command lines, its settings, and what its output says."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

from sinkbench.errors import StackError
from sinkbench.settings import Settings
from sinkbench.stack.containers import SERVICES
from sinkbench.stack.overlay import BASE, overlay
from sinkbench.stack.security import OF_CONTAINERS, kept_security
from sinkbench.stack.securityoverlay import folder_of_containers, security_overlay
from sinkbench.stack.tools import run
from sinkbench.topology import SHIPPED

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
# The first in which an overlay can say that something stands there instead of what is inherited.
LEAST_FOR_OVERLAY = "2.24.4"
# What compose reads beside the project's file if nobody names files.
OVERRIDES = (
    *("compose.override.yml", "compose.override.yaml"),
    *("docker-compose.override.yml", "docker-compose.override.yaml"),
)

DOWN = ("down", "--remove-orphans")
"""Stops and removes all containers, the controller's too; the volumes stay."""


def compose_command(checkout: Path, *arguments: str, files: Sequence[Path] = ()) -> list[str]:
    """The command line of `docker compose` for the project in the folder `checkout`, of these files if given."""
    named = [part for file in files for part in ("--file", str(file))]
    return ["docker", "compose", "--project-directory", str(checkout), *named, "--progress", "plain", *arguments]


def up_arguments(scale: Mapping[str, int], further: Sequence[str] = ()) -> list[str]:
    """Starts all services but the controller, each with its number of containers in `scale`, and waits for health.

    `further` are the nodes that are no service of docker-compose.yml.
    """
    # Without --scale compose would go back to the numbers in the file.
    scaled = [part for service, count in scale.items() for part in ("--scale", f"{service}={count}")]
    return ["up", "--detach", "--wait", "--wait-timeout", str(READY_SECONDS), *scaled, *SERVICES, *further]


def too_old(version: str, least: str = LEAST_COMPOSE) -> bool:
    """Whether this version of compose, as it prints it, lacks what docker-compose.yml needs."""

    def parts(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)[:3]]

    return parts(version) < parts(least)


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
        if self._has_overlay and too_old(done.stdout, LEAST_FOR_OVERLAY):
            raise StackError(
                f"docker compose is {done.stdout.strip()}, {LEAST_FOR_OVERLAY} or newer is needed for the topology"
                f" {settings.layout.name} (older ones know no `!override`); upgrade it, or set SINKBENCH_TOPOLOGY=small"
            )

    @property
    def _has_overlay(self) -> bool:
        return self._settings.layout.name != SHIPPED[0]

    @property
    def overlay(self) -> Path:
        """The file that says what the topology changes, which `run` writes; the small one has none."""
        return self._settings.home / "docker-compose.topology.yml"

    @property
    def security_overlay(self) -> Path:
        """The file that says what security changes, which `run` writes once there are passwords."""
        return self._settings.home / "docker-compose.security.yml"

    def run(self, *arguments: str) -> CompletedProcess[str]:
        """Runs `docker compose` with these arguments to its end. Raises StackError if an overlay cannot be written."""
        return run(compose_command(self._checkout, *arguments, files=self._files()), self._environment())

    def _files(self) -> list[Path]:
        """The project's file, the overlays, which are written, and what its owner changes; none without overlays.

        What the owner says counts for the topology's nodes, too, but does not take away security.
        """
        folder = folder_of_containers(self._settings.home)
        security = kept_security(folder, OF_CONTAINERS) if self._settings.security == "on" else None
        topology, secured = [], []
        if self._has_overlay:
            _write(self.overlay, overlay(self._settings, self._checkout))
            topology.append(self.overlay)
        if security is not None:
            _write(self.security_overlay, security_overlay(self._settings.layout, folder, security.mark))
            secured.append(self.security_overlay)
        own = [path for name in OVERRIDES if (path := self._checkout / name).exists()]
        return [self._checkout / BASE, *topology, *own[:1], *secured] if topology or secured else []

    def project(self) -> str:
        """The name of the project. Raises StackError if docker-compose.yml cannot be read."""
        # The overlay does not change it, and whoever only asks which stack runs is to write nothing.
        asked = ("config", "--format", "json")
        done = run(compose_command(self._checkout, *asked), self._environment())
        if done.returncode != 0 and self._has_overlay:
            # What its owner changes may be of a node that only the overlay has.
            done = run(compose_command(self._checkout, *asked, files=[self._checkout / BASE]), self._environment())
        if done.returncode != 0:
            raise StackError(f"{self._checkout / BASE}: {last_line(done.stderr)}")
        return str(json.loads(done.stdout)["name"])

    def _environment(self) -> dict[str, str]:
        """The caller's environment and the settings in force, so that `.env` and the port offset count here, too."""
        offset = self._settings.port_offset
        ours = {"home", "dist", "user", "stack", "plan", "thresholds", "topology"}
        # An overlay may have to grant more than the default, so that a heap fits in.
        ours |= {name for name in type(self._settings).model_fields if name.endswith("_memory")} - (
            self._settings.model_fields_set
        )
        given = {
            f"SINKBENCH_{name.upper()}": str(value + offset if name.endswith("_port") else value)
            for name, value in self._settings.model_dump(exclude=ours).items()
        }
        return {**os.environ, **given}


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another command may read it at this moment.
        written = path.with_name(f"{path.name}.{os.getpid()}")
        written.write_text(text, encoding="utf-8")
        written.replace(path)
    except OSError as error:
        raise StackError(f"{error.filename}: {error.strerror}; set SINKBENCH_HOME to a folder you can write") from None
