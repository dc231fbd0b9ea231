"""The programs that come from Maven: Kafka, Connect's plugins, the JMX exporter and Elasticsearch."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.stack import Say
from sinkbench.stack.tools import find_java, find_maven

__all__ = ["Distributions", "ensure_distributions", "make_manifests"]

PROJECTS = ("connect", "elasticsearch")


@dataclass(frozen=True)
class Distributions:
    """Where each program was put."""

    kafka_libs: Path
    plugins: Path
    metrics_agent: Path
    elasticsearch: Path


def _digest(checkout: Path) -> str:
    """Changes when a Maven project file does."""
    digest = hashlib.sha256()
    for project in PROJECTS:
        for file in sorted((checkout / project).rglob("pom.xml")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def ensure_distributions(checkout: Path, dist: Path, say: Say) -> Distributions:
    """Has Maven put the programs of `connect/pom.xml` and `elasticsearch/pom.xml` into the folder `dist`, once.

    Nothing is downloaded, nor Maven started, when they are there and the project files have not changed since.

    Raises:
        StackError: Maven is missing, or failed; the message holds its last error.
    """
    stamp = dist / "complete"
    wanted = _digest(checkout)
    if not stamp.exists() or stamp.read_text() != wanted:
        maven = find_maven()
        java = find_java()
        shutil.rmtree(dist, ignore_errors=True)
        dist.mkdir(parents=True)
        for project in PROJECTS:
            say(f"fetching {project}'s programs with Maven")
            done = subprocess.run(
                # The project's folder of build results may be read-only or shared with other accounts.
                [str(maven), "-q", "-B", "-f", str(checkout / project / "pom.xml"), "package", f"-Ddist={dist}"],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "JAVA_HOME": str(java)},
            )
            if done.returncode != 0:
                errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
                raise StackError(f"Maven could not fetch {project}'s programs: {(errors or ['no message'])[0].strip()}")
        make_manifests(checkout, java, dist)
        _let_others_read(dist)
        stamp.write_text(wanted)
    unpacked = sorted(dist.glob("elasticsearch-*"))
    if not unpacked:
        raise StackError(f"{dist}: holds no Elasticsearch; delete that folder and start again")
    return Distributions(
        kafka_libs=dist / "kafka" / "libs",
        plugins=dist / "plugins",
        metrics_agent=dist / "jmx-exporter" / "jmx_prometheus_javaagent.jar",
        elasticsearch=unpacked[-1],
    )


def _let_others_read(folder: Path) -> None:
    """The services may run under another account, and some archives hold files that only their owner may read."""
    for path in folder.rglob("*"):
        mode = path.stat().st_mode
        path.chmod(mode | 0o555 if path.is_dir() or mode & stat.S_IXUSR else mode | 0o444)


def make_manifests(checkout: Path, java: Path, dist: Path) -> None:
    """Gives every plugin a service manifest, so that a worker need not scan its classes."""
    done = subprocess.run(
        [str(checkout / "connect" / "make-manifests"), str(dist / "plugins")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAVA_HOME": str(java), "KAFKA_LIBS": str(dist / "kafka" / "libs")},
    )
    if done.returncode != 0:
        errors = [line.strip() for line in done.stderr.splitlines() if "ERROR" in line or "Exception" in line]
        reason = (errors or [done.stderr.strip() or "no message"])[0]
        raise StackError(f"{dist / 'plugins'}: no plugin manifests could be made: {reason}")
