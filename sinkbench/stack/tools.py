"""Finds the programs that the local stack needs: a JDK, Maven, PostgreSQL, PgBouncer and bsdtar.

Run as a program (`python3 -m sinkbench.stack.tools`) it prints the names of what is missing, a line each, for
`scripts/setup`. Only the standard library is used: nothing is installed yet when setup asks.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from sinkbench.errors import StackError

__all__ = [
    "MINIMUM_JAVA",
    "MINIMUM_POSTGRES",
    "find_bsdtar",
    "find_java",
    "find_maven",
    "find_pgbouncer",
    "find_postgres",
    "missing",
]

MINIMUM_JAVA = 21
MINIMUM_POSTGRES = 15
# Elasticsearch starts its JVM with --add-modules of this one; some small runtimes leave it out.
VECTOR_MODULE = "jdk.incubator.vector"
SYSTEM_PATHS = "/usr/local/sbin:/usr/sbin:/sbin"


def _java_version(home: Path) -> int | None:
    """The feature version of the JDK in `home`, from its release file; None if it is none or lacks a needed module."""
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


def find_java(environ: dict[str, str] | None = None, jvm_folder: Path = Path("/usr/lib/jvm")) -> Path:
    """The home of the JDK to use: JAVA_HOME, else the newest under `jvm_folder`, else the one on PATH, if 21 or newer.

    Raises:
        StackError: there is none; the message lists what was found instead.
    """
    environ = dict(os.environ) if environ is None else environ
    found: list[tuple[int, Path]] = []

    def usable(home: Path) -> bool:
        version = _java_version(home)
        if version is not None:
            found.append((version, home))
        return version is not None and version >= MINIMUM_JAVA

    if environ.get("JAVA_HOME") and usable(Path(environ["JAVA_HOME"])):
        return Path(environ["JAVA_HOME"])
    installed = [home for home in sorted(jvm_folder.glob("*")) if not home.is_symlink() and usable(home)]
    if installed:
        return max(installed, key=lambda home: _java_version(home) or 0)
    program = shutil.which("java", path=environ.get("PATH"))
    if program is not None:
        home = Path(program).resolve().parent.parent
        if usable(home):
            return home
    seen = ", ".join(f"{version} in {home}" for version, home in sorted(set(found))) or "none"
    raise StackError(
        f"Java {MINIMUM_JAVA} or newer with {VECTOR_MODULE}: found {seen}; "
        "install a JDK and set JAVA_HOME to it, or put it under /usr/lib/jvm"
    )


def find_postgres(root: Path = Path("/usr/lib/postgresql")) -> Path:
    """The folder with `postgres` and `initdb` of the newest PostgreSQL, 15 or newer.

    Raises:
        StackError: there is none.
    """
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


def _find_program(name: str, package: str) -> Path:
    program = shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":" + SYSTEM_PATHS)
    if program is None:
        raise StackError(f"the program {name} is missing; install the package {package}")
    return Path(program)


def find_pgbouncer() -> Path:
    """The PgBouncer program. Raises StackError if there is none."""
    return _find_program("pgbouncer", "pgbouncer")


def find_maven() -> Path:
    """The Maven program. Raises StackError if there is none."""
    return _find_program("mvn", "maven")


def find_bsdtar() -> Path:
    """The program that unpacks connector plugins as vendors ship them. Raises StackError if there is none."""
    return _find_program("bsdtar", "libarchive-tools")


def missing() -> list[str]:
    """Which of jdk and of the packages maven, postgresql, pgbouncer and libarchive-tools cannot be found."""
    absent = []
    for name, find in (
        ("jdk", find_java),
        ("maven", find_maven),
        ("postgresql", find_postgres),
        ("pgbouncer", find_pgbouncer),
        ("libarchive-tools", find_bsdtar),
    ):
        try:
            find()
        except StackError:
            absent.append(name)
    return absent


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\n" for name in missing()))
