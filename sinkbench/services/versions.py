"""Supported versions of a service, and the message about others. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

DOTTED = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True)
class Supported:
    """The versions from `least` on, and below `below` if given; `words` is for display, such as "8.19 and 9"."""

    words: str
    least: tuple[int, ...]
    below: tuple[int, ...] | None = None

    def refusal(self, title: str, version: str | None) -> str | None:
        """Returns in one line why a version cannot be used; None if it can, or has no number."""
        numbers = numbers_of(version)
        if not numbers or (self.least <= numbers and (self.below is None or numbers < self.below)):
            return None
        return f"it is {title} {'.'.join(map(str, numbers))}; sinkbench supports {title} {self.words}"


def numbers_of(version: str | None) -> tuple[int, ...]:
    """Returns the first dotted number in a service's version; empty if there is none."""
    found = DOTTED.search(version or "")
    return () if found is None else tuple(int(number) for number in found[0].split("."))
