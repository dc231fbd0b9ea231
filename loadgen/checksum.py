"""The checksum `bench.sum` of a record, which shows from a stored copy alone whether it is unchanged.

It is the CRC-32, as eight hexadecimal digits, of the canonical text

    [RECORD WITHOUT "bench", "bench" WITHOUT "sum"]

as ASCII JSON without white space, with members sorted by name. Numbers count by their exact value; one that is neither
whole nor a double is written as {"number": "DIGITS"}. So a sink may reorder members, drop white space and duplicate
members, and spell texts and numbers in any way. "bench" comes last so that the CRC of the part before it is computed
once for a record that is sent repeatedly."""

import json
import zlib
from collections.abc import Mapping
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any

BENCH, SUM = "bench", "sum"
DIGITS = 8
# Python reads and prints no longer whole number; PostgreSQL prints 1e5000 as one.
_MOST_DIGITS = 4300
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)

canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), check_circular=False, default=lambda exact: {"number": str(exact)}
).encode
"""The canonical text of a value from `parse`: equal for equal values only."""


def _number(text: str) -> int | float | Decimal:
    """Parses a number exactly: 1.0 and 1e23 are whole numbers."""
    try:
        exact = Decimal(text)
    except InvalidOperation:
        return float(text)
    if exact.adjusted() < _MOST_DIGITS and exact == exact.to_integral_value():
        return int(exact)
    nearest = float(text)
    return nearest if Decimal(repr(nearest)) == exact else exact.normalize(_EXACT)


_DECODE = json.JSONDecoder(
    parse_float=_number, parse_int=lambda text: int(text) if len(text) <= _MOST_DIGITS else _number(text)
).decode


def parse(text: str | bytes) -> Any:
    """Parses a JSON text with exact numbers. Raises ValueError if it is not JSON."""
    return _DECODE(text.decode() if isinstance(text, bytes) else text)


def crc_before_bench(record: Mapping[str, Any]) -> int:
    """Returns the CRC-32 of a record's canonical text up to "bench". Raises ValueError for too deep nesting.

    Continued with the canonical text of "bench" and "]" it is the checksum."""
    try:
        return zlib.crc32(f"[{canonical(record)},".encode())
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def checksum(record: Mapping[str, Any]) -> str:
    """Returns the checksum of a record from `parse`. Raises KeyError or TypeError without an object "bench"."""
    rest = dict(record)
    bench = dict(rest.pop(BENCH))
    bench.pop(SUM, None)
    return f"{zlib.crc32(canonical([rest, bench]).encode()):08x}"
