"""Which race has started a stack: a race stops what it started itself, or what a killed race had started."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from loadgen.reading import parse_json, read_text
from sinkbench.errors import StackError
from sinkbench.stack import Stack


class StarterNote:
    """A note next to the stack's lock: which race has started the stack. If no race holds the lock, it was killed."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._file: Path = stack.lock_file.with_suffix(".started")

    def write(self, run: str) -> None:
        """Says that the race of this run, or plan, has started the stack, or is about to."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps({"run": run, "start": self._stack.start_id()}), encoding="utf-8")

    def run(self) -> str | None:
        """The run, or plan, whose race has started the stack as it is up now; None if no race has."""
        try:
            found = parse_json(read_text(self._file, StackError))
        except (FileNotFoundError, ValueError, StackError):
            return None
        # It may have been stopped and started again without sinkbench.
        if not isinstance(found, dict) or found.get("start") not in (None, self._stack.start_id()):
            return None
        return str(found.get("run"))

    def remove(self) -> None:
        """Says that no race has started the stack: it is down, or `sinkbench up` was called."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
