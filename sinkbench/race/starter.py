"""Records which race started a stack: a race stops what it, or a killed race, has started."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from loadgen.reading import parse_json, read_text
from sinkbench.errors import StackError
from sinkbench.stack import Stack


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
