"""Figures in words, for verdicts and tables alike."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percent(share: float) -> str:
    """0.52 is "52 %", 0.042 is "4.2 %"."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def significant(value: float, digits: int = 3) -> str:
    """So many digits, without an exponent: 1510 is "1,510", 0.01234 is "0.0123"."""
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0) if value else 0
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(count: int, noun: str) -> str:
    """1 is "1 task", 2,000 is "2,000 tasks"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def few_of(names: Sequence[str], count: int) -> str:
    """The first names of `count`, as "a, b and 7 more"."""
    rest = count - len(names)
    return ", ".join(names) + (f" and {rest:,} more" if rest > 0 else "")
