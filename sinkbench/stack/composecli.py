"""The command `docker compose` in one folder: its files, its environment and the meaning of its output."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from sinkbench.errors import StackError
from sinkbench.settings import Settings

READY_SECONDS = 240
# The first version in which a file can replace a value of another file (`!override`).
LEAST_COMPOSE = "2.24.4"
BASE, PUBLISHED, SECURE = (f"docker-compose.{name}yml" for name in ("", "published.", "secure."))
# The files that compose adds to the project's file if no files are named.
OVERRIDES = [f"{stem}.override.{end}" for stem in ("compose", "docker-compose") for end in ("yml", "yaml")]


def too_old(version: str) -> bool:
    found, least = ([int(part) for part in re.findall(r"\d+", text)[:3]] for text in (version, LEAST_COMPOSE))
    return found < least


def end_of_build(output: str, lines: int = 15) -> str:
    """Returns the failed step of a build and the last `lines` lines of its output."""
    found = output.strip().splitlines()
    steps = [number for number, line in enumerate(found) if line.startswith(" > [")]
    if not steps:
        return "\n".join(found[-lines:])
    printed = list(itertools.takewhile(lambda line: not line.startswith("------"), found[steps[-1] + 1 :]))
    return "\n".join([found[steps[-1]], *printed[-lines:]])


def last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1].strip() if lines else "no message"


class ComposeCli:
    """The command `docker compose`, run in the checkout with the settings in force."""

    def __init__(self, settings: Settings, checkout: Path) -> None:
        """Raises StackError if the command is missing or too old."""
        self._settings = settings
        self._checkout = checkout
        if shutil.which("docker") is None:
            raise StackError("the command docker is missing; run scripts/docker-bootstrap, or install Docker's client")
        done = self._docker("compose", "version", "--short")
        if done.returncode != 0:
            raise StackError("the command docker has no compose; run scripts/docker-bootstrap, or install its plugin")
        if too_old(done.stdout):
            raise StackError(
                f"docker compose is {done.stdout.strip()}, {LEAST_COMPOSE} or newer is needed (older ones know no"
                " `!override`); upgrade it"
            )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        named = [part for file in self._files() for part in ("--file", file)]
        return self._docker("compose", *named, "--progress", "plain", *arguments)

    def config(self) -> dict[str, Any]:
        """Returns the resolved project: name, services, volumes. Raises StackError if compose rejects its files."""
        done = self.run("config", "--format", "json")
        if done.returncode != 0:
            raise StackError(f"{self._checkout / BASE}: {last_line(done.stderr)}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _files(self) -> list[str]:
        """None if COMPOSE_FILE names them. Security is last: the user's override cannot remove it."""
        environment = self._checkout / ".env"
        lines = environment.read_text(encoding="utf-8") if environment.exists() else ""
        if os.environ.get("COMPOSE_FILE") or re.search(r"^COMPOSE_FILE=.", lines, re.MULTILINE):
            return []
        published = [PUBLISHED] if self._settings.layout.name == "published" else []
        secure = [SECURE] if self._settings.security == "on" else []
        own = [name for name in OVERRIDES if (self._checkout / name).exists()]
        return [BASE, *published, *own[:1], *secure] if published or secure else []

    def _docker(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", *arguments], cwd=self._checkout, env=self._environment(), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        settings = self._settings
        ours = {"home", "dist", "user", "stack", "plan", "thresholds", "topology"}
        given = {
            f"SINKBENCH_{name.upper()}": str(value + settings.port_offset if name.endswith("_port") else value)
            for name, value in settings.model_dump(exclude=ours).items()
        }
        nodes = {
            f"{node.name.upper().replace('-', '_')}_PORT": str(settings.port(f"{node.service}_port", node.number))
            for node in settings.layout.nodes
            if node.service != "connect" and node.number > 1
        }
        return {**os.environ, **given, **nodes}
