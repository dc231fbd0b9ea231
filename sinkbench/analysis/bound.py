"""The bound of a threshold, as `< 1000`."""

import re
from collections.abc import Callable
from operator import eq, ge, gt, le, lt
from typing import NamedTuple, Self

OPERATORS: dict[str, Callable[[float, float], bool]] = {"<=": le, ">=": ge, "==": eq, "<": lt, ">": gt}
_BOUND = re.compile(rf"({'|'.join(OPERATORS)})\s*(\d[\d_]*(?:\.\d+)?)")


class Bound(NamedTuple):
    operator: str
    value: float

    @classmethod
    def of(cls, text: str) -> Self:
        """Reads a bound; ValueError if it is none."""
        if (found := _BOUND.fullmatch(text.strip())) is None:
            raise ValueError(text)
        return cls(found[1], float(found[2]))

    def holds(self, value: float) -> bool:
        return OPERATORS[self.operator](value, self.value)
