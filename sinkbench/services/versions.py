"""Which versions of a service are supported, and what is said of another one. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Supported", "numbers_of"]

DOTTED = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True)
class Supported:
    """The versions from `least` on, and before `below`.

    Attributes:
        words: the same for a person, such as "8.19 and 9".
        least: the numbers of the first that is supported; what follows after these may be anything.
        below: those of the first that is no longer; None if later ones are supported, too.
    """

    words: str
    least: tuple[int, ...]
    below: tuple[int, ...] | None = None

    def refusal(self, title: str, version: str | None) -> str | None:
        """Why a version cannot be used, in one line with its number; None if it can.

        What does not tell its version, or tells one without a number, is not refused.
        """
        numbers = numbers_of(version)
        if not numbers or (self.least <= numbers and (self.below is None or numbers < self.below)):
            return None
        return f"it is {title} {'.'.join(map(str, numbers))}; sinkbench supports {title} {self.words}"


def numbers_of(version: str | None) -> tuple[int, ...]:
    """The first dotted number of what a service tells, which may have words around it; empty if there is none."""
    found = DOTTED.search(version or "")
    return () if found is None else tuple(int(number) for number in found[0].split("."))
