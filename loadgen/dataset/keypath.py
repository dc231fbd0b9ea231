"""The key of a record: what a path leads to in it."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["key_at", "steps_of"]


def steps_of(path: str) -> tuple[str, ...]:
    """The steps of a path: names with dots between them, or, after a slash, a JSON Pointer (RFC 6901).

    Raises ValueError if a step is empty.
    """
    if path.startswith("/"):
        return tuple(step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/"))
    steps = tuple(path.split("."))
    if not all(steps):
        raise ValueError("has an empty step; write names with one dot between them, such as customer.id")
    return steps


def key_at(record: Any, steps: tuple[str, ...]) -> bytes | None:
    """What the steps lead to, as a record's key: a text as it is, a number, true or false as JSON writes it.

    None if they lead nowhere, or to null, an object or a list. A number is a step into a list, from 0.
    """
    found = record
    for step in steps:
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and step.isascii() and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    if isinstance(found, str):
        # A lone half of a surrogate pair has no UTF-8.
        return found.encode("utf-8", "replace")
    if isinstance(found, int | float):
        return json.dumps(found).encode()
    return None
