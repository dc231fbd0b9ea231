"""Finds the local stack's programs; fetches or builds those from Maven. For `scripts/setup`: standard library only."""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.stack import Say

MINIMUM_JAVA = 21
MINIMUM_POSTGRES = 13
# Elasticsearch starts its JVM with this module; some small runtimes omit it.
VECTOR_MODULE = "jdk.incubator.vector"
PROJECTS = ("connect", "elasticsearch")
SOURCES = ("connect/reference/src/main", "elasticsearch/src/main")
# Without a locale Java cannot find files whose path has non-ASCII letters.
UTF8 = {"LC_ALL": "C.UTF-8"}
SYSTEM_PATHS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin"


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command without input to its end and captures its output."""
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def _java_version(home: Path) -> int | None:
    """The JDK's feature version, from its release file; None if `home` has no JDK with all needed modules."""
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    whole = modules is None or VECTOR_MODULE in modules[1].split()
    # Without a compiler Maven cannot build the reference connectors.
    programs = all((home / "bin" / name).exists() for name in ("java", "javac"))
    return int(version[1]) if version and whole and programs else None


def find_java(environ: Mapping[str, str] = os.environ, jvm_folder: Path = Path("/usr/lib/jvm")) -> Path:
    """Returns the home of a JDK 21 or newer: JAVA_HOME, the newest of `jvm_folder`, or on PATH. Raises StackError."""
    homes = [Path(environ["JAVA_HOME"])] if environ.get("JAVA_HOME") else []
    installed = [home for home in sorted(jvm_folder.glob("*")) if not home.is_symlink()]
    homes += sorted(installed, key=lambda home: _java_version(home) or 0, reverse=True)
    if program := shutil.which("java", path=environ.get("PATH")):
        homes.append(Path(program).resolve().parent.parent)
    found = [(version, home) for home in homes if (version := _java_version(home)) is not None]
    if usable := [home for version, home in found if version >= MINIMUM_JAVA]:
        return usable[0]
    seen = ", ".join(f"{version} in {home}" for version, home in sorted(set(found))) or "none"
    raise StackError(
        f"Java {MINIMUM_JAVA} or newer with javac and {VECTOR_MODULE}: found {seen}; "
        "install a JDK and set JAVA_HOME to it, or put it under /usr/lib/jvm"
    )


def find_postgres(root: Path = Path("/usr/lib/postgresql")) -> Path:
    """Returns the bin folder of the newest PostgreSQL. Raises StackError if none is 13 or newer."""
    versions = [
        (int(folder.parent.name), folder)
        for folder in root.glob("*/bin")
        if folder.parent.name.isdigit() and (folder / "postgres").exists() and (folder / "initdb").exists()
    ]
    if versions and max(versions)[0] >= MINIMUM_POSTGRES:
        return max(versions)[1]
    seen = ", ".join(str(version) for version, _ in sorted(versions)) or "none"
    raise StackError(
        f"PostgreSQL {MINIMUM_POSTGRES} or newer under {root}: found {seen}; install the package postgresql"
    )


def find_program(name: str, package: str) -> Path:
    """Returns a program on PATH or in an sbin folder. Raises StackError, with Debian's package, if there is none."""
    program = shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":" + SYSTEM_PATHS)
    if program is None:
        raise StackError(f"the program {name} is missing; install the package {package}")
    return Path(program)


def ensure_distributions(checkout: Path, dist: Path, say: Say) -> dict[str, str]:
    """Fetches the programs of the `pom.xml` files into `dist`, and compiles ours, if one of these files or sources has
    changed. Returns the path of each by the run scripts' variable. Raises StackError with Maven's first error."""
    stamp = dist / "complete"
    files = [file for project in PROJECTS for file in sorted((checkout / project).rglob("pom.xml"))]
    files += sorted(file for folder in SOURCES for file in (checkout / folder).rglob("*") if file.is_file())
    wanted = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    if not stamp.exists() or stamp.read_bytes() != wanted.encode():
        # Before anything is removed: one of them may be missing.
        java, _ = find_java(), find_program("mvn", "maven")
        shutil.rmtree(dist, ignore_errors=True)
        dist.mkdir(parents=True)
        for project in PROJECTS:
            say(f"fetching {project}'s programs with Maven")
            # -Ddist: the checkout's target folder may be read-only or shared with other accounts.
            package = ("package", "-Dmaven.test.skip=true", f"-Ddist={dist}")
            _maven(checkout / project / "pom.xml", package, f"{project}'s programs")
        make_manifests(checkout, java, dist)
        # The services may run as another account, and some archives hold files that only their owner may read.
        for path in dist.rglob("*"):
            mode = path.stat().st_mode
            path.chmod(mode | 0o555 if path.is_dir() or mode & stat.S_IXUSR else mode | 0o444)
        stamp.write_text(wanted)
    if not (unpacked := sorted(dist.glob("elasticsearch-*"))):
        raise StackError(f"{dist}: holds no Elasticsearch; delete that folder and start again")
    return {
        "KAFKA_LIBS": str(dist / "kafka" / "libs"),
        "CONNECT_PLUGINS": str(dist / "plugins"),
        "CONNECT_METRICS_AGENT": str(dist / "jmx-exporter" / "jmx_prometheus_javaagent.jar"),
        "ELASTICSEARCH_HOME": str(unpacked[-1]),
    }


def _maven(project: Path, arguments: Sequence[str], what: str) -> None:
    done = run(
        [str(find_program("mvn", "maven")), "-q", "-B", "-f", str(project), *arguments],
        {**os.environ, **UTF8, "JAVA_HOME": str(find_java())},
    )
    if done.returncode != 0:
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        raise StackError(f"Maven could not fetch {what}: {(errors or ['no message'])[0].strip()}")


def add_plugin(what: str, checkout: Path, say: Say) -> tuple[Path, bool]:
    """Puts a plugin, a path or Maven's coordinates, where the workers of the next start find it. Returns its new path
    and whether it is new. Raises StackError, with Maven's first error."""
    plugins = checkout / "connect" / "plugins"
    with tempfile.TemporaryDirectory(dir=plugins.parent, prefix=".plugin") as fetched:
        source = checkout / what
        if not source.exists():
            say(f"fetching {what} with Maven")
            copy = ("-N", "dependency:copy", f"-Dartifact={what}", f"-DoutputDirectory={fetched}")
            _maven(checkout / "connect" / "pom.xml", copy, what)
            source = next(Path(fetched).iterdir())
        target = plugins / source.name
        if target.exists():
            return target, False
        copied = shutil.copytree if source.is_dir() else shutil.copy2
        copied(source, target)
    return target, True


def checksum(plugin: Path) -> str:
    """Returns the SHA-256 of a plugin's file, or of the jars of its folder with their names, as a hex digest."""
    whole = hashlib.sha256()
    for file in sorted(plugin.rglob("*.jar")) if plugin.is_dir() else [plugin]:
        whole.update(file.name.encode() + file.read_bytes())
    return whole.hexdigest()


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


def missing() -> list[str]:
    """Returns Debian's names of the missing packages."""
    programs = {"maven": "mvn", "pgbouncer": "pgbouncer", "libarchive-tools": "bsdtar"}
    finds: dict[str, Callable[[], Path]] = {"jdk": find_java, "postgresql": find_postgres}
    finds |= {package: partial(find_program, name, package) for package, name in programs.items()}
    absent = []
    for package, find in finds.items():
        try:
            find()
        except StackError:
            absent.append(package)
    return absent


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\n" for name in missing()))
