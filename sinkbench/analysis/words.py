"""Figures in words, for verdicts, tables and reports alike; None is `NOT_MEASURED`."""

import math
from collections.abc import Sequence

NOT_MEASURED = "-"


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


def in_time(seconds: float) -> str:
    """45 is "45 s", 130 is "2 min", 9,000 is "2.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3600:,.1f} h"


def few_of(names: Sequence[str], most: int = 3, count: int = 0) -> str:
    """The first names of all (or of `count`), as "a, b and 7 more"."""
    rest = (count or len(names)) - len(names[:most])
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def formatted(value: float | None, form: str) -> str:
    return NOT_MEASURED if value is None else f"{value:{form}}"


def whole(value: float | None) -> str:
    """As 12,345; NaN is `NOT_MEASURED`, too."""
    # Rounded first, to avoid -0.
    return NOT_MEASURED if value is None or math.isnan(value) else f"{round(value):,}"


def seconds_each(seconds: float | None) -> str:
    """CPU seconds per million records: 9.94 is "9.9", 12.3 is "12"."""
    return tenths(seconds, 9.95)


def tenths(value: float | None, whole_from: float = math.inf) -> str:
    """As 12.3; without a decimal from `whole_from` on."""
    return whole(value) if value is None or value >= whole_from else f"{value:.1f}"


def times(ratio: float) -> str:
    """As 0.87, 1.04, 2.1, 99.9 and 117: two decimals near 1 show on which side it is."""
    return f"{ratio:.2f}" if ratio < 1.95 else tenths(ratio, 99.95)


def milliseconds(value: float | None) -> str:
    """As 0.12, 1.2, 12.3 and 123."""
    return f"{value:.2f}" if value is not None and value < 1 else tenths(value, 99.5)


def megabytes(count: float | None) -> str:
    """Bytes in units of 10^6: 1,234, 12.3."""
    return whole(None) if count is None else tenths(count / 1e6, 99.5)


def money(amount: float | None) -> str:
    """As 123.45, 1.23, 0.123 and 0.000123: two decimals, or three digits below 1."""
    if amount is None:
        return NOT_MEASURED
    decimals = 2 if amount >= 1 or amount <= 0 else min(2 - math.floor(math.log10(amount)), 12)
    return f"{amount:,.{decimals}f}"


def span(low: float, high: float) -> str:
    return f"{whole(low)}-{whole(high)}"


def share_span(low: float, high: float) -> str:
    """Shares in percent: as 52-64."""
    return "-".join(percent(share).removesuffix(" %") for share in (low, high))
