"""The programs that come from Maven: Kafka, Connect's plugins, the JMX exporter and Elasticsearch."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.stack import Say
from sinkbench.stack.tools import find_java, find_program, run

PROJECTS = ("connect", "elasticsearch")
# Without a locale Java cannot find files whose path has non-ASCII letters.
UTF8 = {"LC_ALL": "C.UTF-8"}


def _digest(checkout: Path) -> str:
    files = [file for project in PROJECTS for file in sorted((checkout / project).rglob("pom.xml"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def ensure_distributions(checkout: Path, dist: Path, say: Say) -> dict[str, str]:
    """Fetches the programs of the `pom.xml` files into `dist` if these have changed. Returns the path of each, by the
    variable of the run scripts. Raises StackError with Maven's first error.
    """
    stamp = dist / "complete"
    wanted = _digest(checkout)
    if not stamp.exists() or stamp.read_bytes() != wanted.encode():
        maven = find_program("mvn", "maven")
        java = find_java()
        shutil.rmtree(dist, ignore_errors=True)
        dist.mkdir(parents=True)
        for project in PROJECTS:
            say(f"fetching {project}'s programs with Maven")
            done = run(
                # -Ddist: the checkout's target folder may be read-only or shared with other accounts.
                [str(maven), "-q", "-B", "-f", str(checkout / project / "pom.xml"), "package", f"-Ddist={dist}"],
                {**os.environ, **UTF8, "JAVA_HOME": str(java)},
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
    return {
        "KAFKA_LIBS": str(dist / "kafka" / "libs"),
        "CONNECT_PLUGINS": str(dist / "plugins"),
        "CONNECT_METRICS_AGENT": str(dist / "jmx-exporter" / "jmx_prometheus_javaagent.jar"),
        "ELASTICSEARCH_HOME": str(unpacked[-1]),
    }


def _let_others_read(folder: Path) -> None:
    # The services may run as another account, and some archives hold files that only their owner may read.
    for path in folder.rglob("*"):
        mode = path.stat().st_mode
        path.chmod(mode | 0o555 if path.is_dir() or mode & stat.S_IXUSR else mode | 0o444)


def make_manifests(checkout: Path, java: Path, dist: Path) -> None:
    """Gives every plugin a service manifest, so that workers need not scan classes. Raises StackError if that fails."""
    done = run(
        [str(checkout / "connect" / "make-manifests"), str(dist / "plugins")],
        {**os.environ, **UTF8, "JAVA_HOME": str(java), "KAFKA_LIBS": str(dist / "kafka" / "libs")},
    )
    if done.returncode != 0:
        errors = [line.strip() for line in done.stderr.splitlines() if "ERROR" in line or "Exception" in line]
        reason = (errors or [done.stderr.strip() or "no message"])[0]
        raise StackError(f"{dist / 'plugins'}: no plugin manifests could be made: {reason}")
