"""What runs that were killed have left behind: on a stack of one's own all that is named like a trial's, on clusters
of others only what runs of this account on this machine have made. Somebody else's run may go on there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from sinkbench.stack import Stack

__all__ = ["PREFIX", "TRIAL", "Book", "is_leftover"]

# Begins the name of everything that a trial creates; also a legal name of a table that needs no quotes.
PREFIX = "tides_"
TOKEN = re.compile(r"[0-9a-f]{6}")
# What comes after the token of a run.
NUMBER = r"_([0-9]{3,}|pilot(_[0-9]+)?|limit(_[a-z]+)?)"
TRIAL = re.compile(rf"{PREFIX}{TOKEN.pattern}{NUMBER}")
"""The name of what a trial, or a pilot, of any run has made."""


class Book:
    """The tokens of runs that began on clusters of others, a line each, in a file beside the stack's lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def of(cls, stack: Stack) -> Book:
        """The book of that stack."""
        return cls(stack.lock_file.with_name("runs"))

    def tokens(self) -> list[str]:
        """The tokens of all runs that have begun since the book was last emptied."""
        try:
            lines = self._path.read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return []
        return [line for line in lines if TOKEN.fullmatch(line)]

    def begin(self, token: str) -> None:
        """Writes down a run, before it creates anything."""
        with self._path.open("a", encoding="ascii") as file:
            file.write(f"{token}\n")

    def clear(self) -> None:
        """Forgets all runs: what they left behind is gone."""
        self._path.unlink(missing_ok=True)


def is_leftover(stack: Stack) -> Callable[[str], bool]:
    """Whether a thing of that name was left behind by an earlier run."""
    if not stack.endpoints.shared:
        return lambda name: name.startswith(PREFIX)
    tokens = "|".join(Book.of(stack).tokens())
    pattern = re.compile(rf"{PREFIX}({tokens}){NUMBER}")
    return lambda name: bool(tokens) and pattern.fullmatch(name) is not None
