"""A record of a data set: a JSON object that keeps its bytes, and a path to its key."""

from __future__ import annotations

import json
from typing import Any, NoReturn

BLANK = b" \t\r\n"
"""JSON's white space."""
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
    """Returns a record's members. Raises ValueError unless it is a JSON object in UTF-8 without a member "bench"."""
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
        raise ValueError(f'has a member "{BENCH}", which sinkbench\'s audit needs; rename it')
    return value


def opening(text: bytes) -> bytes:
    """Returns the bytes of a JSON object up to where another member may follow."""
    body = text.strip(BLANK)[:-1]
    return body if not body[1:].strip(BLANK) else body + b", "


def original(start: bytes) -> bytes:
    return start.removesuffix(b", ") + b"}"


def closed(start: bytes, bench: bytes) -> bytes:
    """Returns a whole record: its `opening` and the value of the member "bench"."""
    return b'%b"bench": %b}' % (start, bench)


def steps_of(path: str) -> tuple[str, ...]:
    """Splits a path: names with dots between them, or a JSON Pointer (RFC 6901). Raises ValueError."""
    if path.startswith("/"):
        return tuple(step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/"))
    steps = tuple(path.split("."))
    if not all(steps):
        raise ValueError("has an empty step; write names with one dot between them, such as customer.id")
    return steps


def key_at(record: Any, steps: tuple[str, ...]) -> bytes | None:
    """Returns the value at a path as a key: a text unchanged, a number or boolean as JSON; else None."""
    found = record
    for step in steps:
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and step.isascii() and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    if isinstance(found, str):
        # A lone surrogate has no UTF-8.
        return found.encode("utf-8", "replace")
    if isinstance(found, int | float):
        return json.dumps(found).encode()
    return None
