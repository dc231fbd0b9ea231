"""File locks: one race per stack, checkout and run folder. A remaining file without a lock means nothing."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from loadgen.reading import parse_json
from sinkbench.errors import ResultsError, StackError

CHECKOUT_LOCK = Path("results") / ".race.lock"
"""Relative to the checkout, the only folder that containers share with the machine."""
# Time between taking a lock and writing its owner.
WRITING_SECONDS = 1.0


@contextmanager
def only_race(
    stack_lock: Path, checkout: Path, plan: str, container: str | None = None
) -> Iterator[Callable[[str], None]]:
    """Locks a stack and a checkout, whose stacks share a machine. Yields a function that records the run's id.

    Raises StackError, with process (or `container`), plan, run and start time of the other race, if a lock is taken.
    """
    wheres = {(checkout / CHECKOUT_LOCK).resolve(): "in this checkout"}
    wheres.setdefault(stack_lock.resolve(), "on this stack")
    who = {"pid": os.getpid()} if container is None else {"container": container}
    holder = {**who, "plan": plan, "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"}
    with ExitStack() as held:
        files = []
        for path, where in wheres.items():
            file = _opened(path, needed=path == stack_lock.resolve())
            if file is not None:
                held.enter_context(file)
                _take(file, where)
                held.callback(_write, file, {})
                files.append(file)

        def tell(run: str | None) -> None:
            for file in files:
                _write(file, {**holder, "run": run})

        tell(None)
        yield tell


def race_on(stack_lock: Path) -> str | None:
    """Returns the owner of a stack's lock as in an error message; None if it is free."""
    try:
        file = stack_lock.open(encoding="utf-8")
    except OSError:
        return None
    with file:
        try:
            # Shared, so that concurrent queries do not look like a race.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _holder(file)
    return None


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """Locks the folder of a run while trials are added. Raises ResultsError if another race has the lock."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsError(f"{folder}: its race still goes on; wait for it") from None
        except OSError:
            # Some network file systems cannot lock a folder; the other locks suffice for most races.
            pass
        yield
    finally:
        os.close(descriptor)


def _opened(path: Path, *, needed: bool) -> TextIO | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+", encoding="utf-8")
    except OSError:
        if needed:
            raise
    # A file of another account can be locked but not written.
    with suppress(OSError):
        return path.open(encoding="utf-8")
    return None


def _take(file: TextIO, where: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StackError(f"another race is running {where} ({_holder(file)}); wait for it") from None


def _write(file: TextIO, holder: dict[str, object]) -> None:
    if file.writable():
        file.truncate(0)
        file.write(json.dumps(holder) if holder else "")
        file.flush()


def _holder(file: TextIO) -> str:
    """Owner in a lock file: `pid 7, plan quick, run 20261121T034800Z-quick, since ...`."""
    deadline = time.monotonic() + WRITING_SECONDS
    while not (text := _read(file)) and time.monotonic() < deadline:
        time.sleep(0.05)
    known: dict[str, object] = {}
    with suppress(ValueError, TypeError):
        known |= parse_json(text)
    if not {"pid", "container"} & set(known):
        known["pid"] = "unknown"
    keys = ("container", "pid", "plan", "run", "since")
    return ", ".join(f"{key} {known[key]}" for key in keys if known.get(key) is not None)


def _read(file: TextIO) -> str:
    # After a power failure the file may contain anything.
    with suppress(ValueError):
        file.seek(0)
        return file.read().strip()
    return "null"
