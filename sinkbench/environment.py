"""What a run's figures depend on and a reader must know: the machine and the versions. No name of host or user."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from pydantic import JsonValue

from sinkbench.connect import ConnectCluster
from sinkbench.errors import StackError
from sinkbench.stack import Endpoints, Stack
from sinkbench.stack.access import http_client

__all__ = ["describe", "machine"]

MAVEN = "{http://maven.apache.org/POM/4.0.0}"
TIMEOUT_SECONDS = 10.0
CLIENTS = ("confluent-kafka", "psycopg", "elasticsearch")


def describe(stack: Stack, checkout: Path, plugins: Mapping[str, str | None] | None = None) -> dict[str, JsonValue]:
    """The machine, its operating system, and the version of everything that takes part in a run on `stack`.

    The machine is the controller's; on clusters of others the services have machines of their own.

    Args:
        stack: where the services are.
        checkout: where sinkbench's own files are.
        plugins: version of each plugin that takes part, by its class.

    Raises:
        StackError: a service does not answer.
    """
    return {
        "stack": stack.name,
        "unmeasured": list(stack.unmeasured),
        "workers": stack.workers,
        **machine(checkout),
        "versions": _versions(stack, checkout),
        "plugins": dict(plugins or {}),
    }


def machine(checkout: Path) -> dict[str, JsonValue]:
    """Of `describe` that which can be told without any service: the machine, its system, and sinkbench's own commit."""
    return {
        "cpu_model": _cpu_model(),
        "cpu_count": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "system": _system(),
        "commit": _commit(checkout),
    }


def _cpu_model() -> str | None:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    return found.group(1).strip() if found else platform.machine()


def _system() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _commit(checkout: Path) -> str | None:
    """The commit that is checked out, with "+" if files that it holds were changed since."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    return None if commit is None else commit + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def _versions(stack: Stack, checkout: Path) -> dict[str, JsonValue]:
    versions: dict[str, JsonValue] = {"sinkbench": version("sinkbench"), "python": platform.python_version()}
    versions.update({client: version(client) for client in CLIENTS})
    endpoints = stack.endpoints
    if not endpoints.shared:
        versions.update(_shipped(checkout))
    try:
        with ConnectCluster(endpoints.connect.values(), endpoints.connect_access) as connect:
            versions["connect"] = connect.version()
        if endpoints.elasticsearch is not None:
            versions.update(_elasticsearch(endpoints))
        if endpoints.postgres is not None:
            with psycopg.connect(endpoints.postgres) as connection:
                versions["postgres"] = connection.execute("SHOW server_version").fetchall()[0][0]
        if endpoints.pgbouncer_admin is not None:
            with psycopg.connect(endpoints.pgbouncer_admin, autocommit=True) as connection:
                versions["pgbouncer"] = connection.execute("SHOW VERSION").fetchall()[0][0]
    except (httpx.HTTPError, psycopg.Error) as error:
        raise StackError(f"a service did not tell its version: {error}") from None
    return versions


def _shipped(checkout: Path) -> dict[str, JsonValue]:
    """What a stack of our own is made of: the programs that Maven has brought."""
    found: dict[str, JsonValue] = {}
    properties = ET.parse(checkout / "connect" / "pom.xml").getroot().find(f"{MAVEN}properties")  # noqa: S314 - ours
    for element in [] if properties is None else properties:
        name = element.tag.removeprefix(MAVEN)
        if name.endswith(".version"):
            found[name.removesuffix(".version")] = element.text
    return found


def _elasticsearch(endpoints: Endpoints) -> dict[str, JsonValue]:
    """Elasticsearch's version and that of its Java, on which a stack of our own runs Kafka and Connect, too.

    None for each if Elasticsearch does not show its nodes to us.
    """
    asked = {"filter_path": "nodes.*.version,nodes.*.jvm.version"}
    with http_client(endpoints.elasticsearch_access, TIMEOUT_SECONDS) as http:
        answer = http.get(f"{endpoints.elasticsearch}/_nodes/_local", params=asked)
    nodes = answer.json().get("nodes", {}) if answer.status_code == httpx.codes.OK else {}
    node: dict[str, Any] = next(iter(nodes.values()), {})
    return {"elasticsearch-server": node.get("version"), "elasticsearch-java": node.get("jvm", {}).get("version")}
