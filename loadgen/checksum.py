"""The checksum that a record bears as `bench.sum`: from it alone a copy shows whether it still has what was sent.

It is the CRC-32 of the record's canonical text, in eight hexadecimal digits. Canonical is the list

    [RECORD WITHOUT "bench", "bench" WITHOUT "sum"]

as JSON with its members in the order of their names, without white space, in ASCII. Numbers count by their value: whole
ones exactly, however they are spelled, others as the nearest double. So a sink may order members, drop white space and
all but the last of several members of one name, and spell texts and numbers as it likes. "bench" comes last, so that
the text of what comes before is worked out once for a record that is sent again and again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

__all__ = ["BENCH", "DIGITS", "SUM", "checksum", "crc_before_bench", "parse"]

BENCH, SUM = "bench", "sum"
DIGITS = 8
# Python writes no whole number of more digits; PostgreSQL spells 1e5000 as one.
_MOST_DIGITS = 4300

_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


def _number(text: str) -> int | float:
    """What is spelled with a fraction or an exponent: 1.0 and 1e23 are whole numbers."""
    try:
        exact = Decimal(text)
    except InvalidOperation:
        return float(text)
    is_whole = exact.adjusted() < _MOST_DIGITS and exact == exact.to_integral_value()
    return int(exact) if is_whole else float(text)


_DECODE = json.JSONDecoder(parse_float=_number).decode


def parse(text: str | bytes) -> Any:
    """The value of a JSON text, as `checksum` needs it. Raises ValueError if it is none."""
    return _DECODE(text.decode() if isinstance(text, bytes) else text)


def crc_before_bench(record: Mapping[str, Any]) -> int:
    """The CRC-32 of the canonical text of a record up to "bench", which it has not got yet.

    Continued with the canonical text of "bench" and "]" it is the checksum. Raises ValueError for a record
    that is nested too deeply.
    """
    try:
        return zlib.crc32(f"[{_ENCODE(record)},".encode())
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def checksum(record: Mapping[str, Any]) -> str:
    """The checksum of a record that was read by `parse`; the one that it bears does not matter.

    Raises KeyError or TypeError if it has no object "bench".
    """
    rest = dict(record)
    bench = dict(rest.pop(BENCH))
    bench.pop(SUM, None)
    return f"{zlib.crc32(_ENCODE([rest, bench]).encode()):08x}"
