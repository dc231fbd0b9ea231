"""File locks: one race per stack and checkout; a remaining file without a lock means nothing."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from loadgen.reading import parse_json, read_text
from sinkbench.errors import ResultsError, StackError
from sinkbench.stack import Stack

CHECKOUT_LOCK = Path("results") / ".race.lock"
"""Relative to the checkout, the only folder that containers share with the machine."""


@contextmanager
def only_race(lock: Path, checkout: Path, plan: str, container: str | None = None) -> Iterator[Callable[[str], None]]:
    """Locks a stack and a checkout, whose stacks share a machine. Yields a function that records the run's id.

    Raises StackError, with process (or `container`), plan, run and start time of the other race, if a lock is taken."""
    wheres = {(checkout / CHECKOUT_LOCK).resolve(): "in this checkout"}
    wheres.setdefault(lock.resolve(), "on this stack")
    who = {"pid": os.getpid()} if container is None else {"container": container}
    holder = {**who, "plan": plan, "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"}
    with ExitStack() as held:
        files = []
        for path, where in wheres.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = held.enter_context(path.open("a+", encoding="utf-8"))
            except OSError:
                # A checkout that cannot be written does not keep a race from its stack.
                if path == lock.resolve():
                    raise
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StackError(f"another race is running {where} ({_holder(file)}); wait for it") from None
            held.callback(_write, file, {})
            files.append(file)

        def tell(run: str | None) -> None:
            for file in files:
                _write(file, {**holder, "run": run})

        tell(None)
        yield tell


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """Locks a run's folder while trials are added. Raises ResultsError if another race has the lock."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ResultsError(f"{folder}: its race still goes on; wait for it") from None
    finally:
        os.close(descriptor)


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


class StarterNote:
    """A note next to the stack's lock: which race started the stack. If the lock is free, that race was killed."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._file: Path = stack.lock_file.with_suffix(".started")

    def write(self, run: str) -> None:
        """Records that the race of this run, or plan, starts the stack."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps({"run": run, "start": self._stack.start_id()}), encoding="utf-8")

    def run(self) -> str | None:
        """The run, or plan, whose race started the stack that is up now; None if no race did."""
        try:
            found = parse_json(read_text(self._file, StackError))
        except (FileNotFoundError, ValueError, StackError):
            return None
        # The stack may have been restarted without sinkbench.
        if not isinstance(found, dict) or found.get("start") not in (None, self._stack.start_id()):
            return None
        return str(found.get("run"))

    def remove(self) -> None:
        """Records that no race started the stack, as after `sinkbench up`."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


def _write(file: TextIO, holder: dict[str, object]) -> None:
    file.truncate(0)
    file.write(json.dumps(holder) if holder else "")
    file.flush()


def _holder(file: TextIO) -> str:
    """Owner in a lock file: `pid 7, plan quick, run 20261121T034800Z-quick, since ...`."""
    known: dict[str, object] = {}
    # It is empty for a moment after it was taken; after a power failure it may contain anything.
    with suppress(ValueError, TypeError):
        file.seek(0)
        known |= parse_json(file.read())
    if not {"pid", "container"} & set(known):
        known["pid"] = "unknown"
    keys = ("container", "pid", "plan", "run", "since")
    return ", ".join(f"{key} {known[key]}" for key in keys if known.get(key) is not None)
