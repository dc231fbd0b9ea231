"""Versions and flags of JVMs. Flags with free text are left out, since they may name a user or a host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from pydantic import JsonValue

_SIZE = re.compile(r"-(X(?:ms|mx|mn|ss))(\d+[kmgtKMGT]?)")
_SWITCH = re.compile(r"-XX:([+-])(\w+)")
_NUMBER = re.compile(r"-XX:(\w+)=(\d+(?:\.\d+)?[kmgtKMGT]?)")
_MODE = re.compile(r"-(Xint|Xcomp|Xmixed|Xbatch)")
# Newer and older versions of the Prometheus JMX exporter differ in this name.
_VERSION = re.compile(r'^(?:jvm_runtime_info|jvm_info)\{(?:[^}]*,)?version="([^"]+)"', re.MULTILINE)


def flags_of(words: Iterable[str]) -> dict[str, JsonValue]:
    """Returns a Java command line's flags: sizes and numbers as text, switches as booleans. The last one wins."""
    found: dict[str, JsonValue] = {}
    for word in words:
        if size := _SIZE.fullmatch(word) or _NUMBER.fullmatch(word):
            found[size[1]] = size[2]
        elif switch := _SWITCH.fullmatch(word):
            found[switch[2]] = switch[1] == "+"
        elif mode := _MODE.fullmatch(word):
            found[mode[1]] = True
    return found


def java_of(words: Sequence[str]) -> str | None:
    """Returns the program of a Java command line; None if it is not Java."""
    return words[0] if words and PurePosixPath(words[0]).name == "java" else None


def version_shown(metrics: str) -> str | None:
    """Returns the Java version in a worker's metrics (Prometheus text); None if they contain none."""
    found = _VERSION.search(metrics)
    return None if found is None else found[1]


def common(values: Iterable[JsonValue]) -> JsonValue:
    """Returns the value that all processes share, "different" if they differ. Unknown ones (None) are ignored."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return known[0] if all(value == known[0] for value in known) else "different"
