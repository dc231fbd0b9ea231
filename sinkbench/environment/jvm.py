"""The Java virtual machines of Kafka, Connect and Elasticsearch: their version, and the flags that they were given.

Only flags with a number, or that switch something, are kept: a path, or a command, may hold a name of a user or a host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from prometheus_client.parser import text_string_to_metric_families
from pydantic import JsonValue

__all__ = ["common", "flags_of", "java_of", "jvm", "version_shown"]

_SIZE = re.compile(r"-(X(?:ms|mx|mn|ss))(\d+[kmgtKMGT]?)")
_SWITCH = re.compile(r"-XX:([+-])(\w+)")
_NUMBER = re.compile(r"-XX:(\w+)=(\d+(?:\.\d+)?[kmgtKMGT]?)")
_MODE = re.compile(r"-(Xint|Xcomp|Xmixed|Xbatch)")
# Newer and older names of the same in the Prometheus JMX exporter.
_VERSIONS = ("jvm_runtime_info", "jvm_info")


def flags_of(words: Iterable[str]) -> dict[str, JsonValue]:
    """The flags among the words of a Java command line: sizes and numbers as they were given, switches as truth values.

    Of a flag that is given twice the last one holds, as it does for Java.
    """
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
    """The program of a command line if that is Java, as it was called; None if it is something else."""
    return words[0] if words and PurePosixPath(words[0]).name == "java" else None


def version_shown(metrics: str) -> str | None:
    """The Java version among what a worker's exporter shows (Prometheus text); None if it is not there."""
    lines = [line for line in metrics.splitlines() if line.startswith(_VERSIONS)]
    try:
        families = list(text_string_to_metric_families("\n".join([*lines, ""])))
    except ValueError:
        return None
    return next((sample.labels.get("version") for family in families for sample in family.samples), None)


def common(values: Iterable[JsonValue]) -> JsonValue:
    """What all of several processes have in common: the value that they share, "different" if they share none.

    None, for one of which nothing is known, is left out; of none at all nothing is known.
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    return known[0] if all(value == known[0] for value in known) else "different"


def jvm(version: str | None, flags: JsonValue) -> dict[str, JsonValue]:
    """A JVM as the environment has it; None for what is not known."""
    return {"version": version, "flags": flags}
