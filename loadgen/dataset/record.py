"""One record of a data set: a JSON object as somebody has written it, which keeps its bytes."""

from __future__ import annotations

import json
from typing import Any, NoReturn

__all__ = ["BLANK", "closed", "opening", "original", "parse_record"]

BLANK = b" \t\r\n"
"""What JSON allows around a value."""
BENCH = "bench"


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


DECODER = json.JSONDecoder(parse_constant=_no_number)
_IN_WORDS = {
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def parse_record(text: bytes) -> dict[str, Any]:
    """The members of a record; of two of one name the last.

    Raises ValueError, with what was found: it is no JSON object in UTF-8, or has a member "bench", which the audit
    needs for itself.
    """
    try:
        value = DECODER.decode(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start + 1})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON ({error.msg} at its character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if type(value) is not dict:
        raise ValueError(f"is {_IN_WORDS[type(value)]}, not a JSON object")
    if BENCH in value:
        raise ValueError(f'has a member "{BENCH}" of its own, which sinkbench\'s audit needs; rename it')
    return value


def opening(text: bytes) -> bytes:
    """The bytes of a JSON object up to where another member may follow: without its closing brace, with a comma."""
    body = text.strip(BLANK)[:-1]
    return body if not body[1:].strip(BLANK) else body + b", "


def original(start: bytes) -> bytes:
    """The record whose `opening` this is, without blanks around it."""
    return start.removesuffix(b", ") + b"}"


def closed(start: bytes, bench: bytes) -> bytes:
    """A whole record: its `opening`, and `bench`, the value of that member."""
    return b'%b"bench": %b}' % (start, bench)
