"""Finds the programs of the local stack. `scripts/setup` runs it to print the missing ones: standard library only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from sinkbench.errors import StackError

# Go fetches a newer version itself if the build requires it.
MINIMUM_GO = (1, 21)
MINIMUM_JAVA = 21
MINIMUM_POSTGRES = 13
# Elasticsearch starts its JVM with this module; some small runtimes omit it.
VECTOR_MODULE = "jdk.incubator.vector"
SYSTEM_PATHS = "/usr/local/sbin:/usr/sbin:/sbin"


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command without input to its end and captures its output."""
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def _java_version(home: Path) -> int | None:
    """The JDK's feature version, from its release file; None if `home` has no JDK with all needed modules."""
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    if version is None or not (home / "bin" / "java").exists():
        return None
    if modules is not None and VECTOR_MODULE not in modules.group(1).split():
        return None
    return int(version.group(1))


def find_java(environ: Mapping[str, str] = os.environ, jvm_folder: Path = Path("/usr/lib/jvm")) -> Path:
    """Returns the home of a JDK 21 or newer: JAVA_HOME, the newest of `jvm_folder`, or on PATH. Raises StackError."""
    homes = [Path(environ["JAVA_HOME"])] if environ.get("JAVA_HOME") else []
    installed = [home for home in sorted(jvm_folder.glob("*")) if not home.is_symlink()]
    homes += sorted(installed, key=lambda home: _java_version(home) or 0, reverse=True)
    if program := shutil.which("java", path=environ.get("PATH")):
        homes.append(Path(program).resolve().parent.parent)
    found = [(version, home) for home in homes if (version := _java_version(home)) is not None]
    for version, home in found:
        if version >= MINIMUM_JAVA:
            return home
    seen = ", ".join(f"{version} in {home}" for version, home in sorted(set(found))) or "none"
    raise StackError(
        f"Java {MINIMUM_JAVA} or newer with {VECTOR_MODULE}: found {seen}; "
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


def find_go(folder: Path = Path("/usr/local/go/bin")) -> Path:
    """Returns the program on PATH, else in `folder`. Raises StackError if there is none or it is too old."""
    wanted = "Go 1.23 or newer builds toxiproxy, which faults of the network need"
    install = "install the package golang-go, or a newer Go and put its folder bin on PATH"
    found = shutil.which("go", path=f"{os.environ.get('PATH', os.defpath)}:{folder}")
    if found is None:
        raise StackError(f"{wanted}: found none; {install}")
    version = run([found, "env", "GOVERSION"]).stdout.strip()
    numbers = re.match(r"go(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < MINIMUM_GO:
        raise StackError(f"{wanted}: found {version or 'one that does not run'} at {found}; {install}")
    return Path(found)


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
