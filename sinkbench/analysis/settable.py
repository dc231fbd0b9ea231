"""What a plan may set a sink's services to: the values that each setting takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Given = Mapping[str, Mapping[str, str]]
"""Settings with their values, by the service."""


@dataclass(frozen=True)
class Allowed:
    """The values that a setting may have, as text: whether it takes one, and in words which it takes."""

    takes: Callable[[str], bool]
    in_words: str


@dataclass(frozen=True)
class Settable:
    """What of one service can be set for the time of a trial.

    Attributes:
        settings: the values that each may have, by its own name.
        shared: whether it touches no other user, so that it can be set on clusters of others, too.
        lasts: whether it outlasts a restart of the service.
    """

    settings: Mapping[str, Allowed]
    shared: bool = False
    lasts: bool = True


def one_of(*values: str) -> Allowed:
    """One of these words."""
    return Allowed(values.__contains__, f"one of {', '.join(values)}")


def whole(least: int, most: int) -> Allowed:
    """A whole number within these bounds."""
    return Allowed(
        lambda value: re.fullmatch(r"\d{1,10}", value, re.ASCII) is not None and least <= int(value) <= most,
        f"a whole number from {least} to {most}",
    )


def duration(*words: str) -> Allowed:
    """A time with its unit, such as 500ms, or one of these words."""
    takes = re.compile(r"\d{1,9}(ms|s|m|h)", re.ASCII)
    return Allowed(
        lambda value: value in words or takes.fullmatch(value) is not None,
        " or ".join(["a time such as 500ms, 5s or 1m", *words]),
    )
