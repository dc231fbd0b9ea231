"""Which settings of a sink's services a plan may change, and to which values. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Given = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Allowed:
    takes: Callable[[str], bool]
    in_words: str


@dataclass(frozen=True)
class Settable:
    """The settings of one service that can be changed during a trial. `shared`: without effect on other users, so
    that they may be set on shared clusters. `lasts`: they survive a restart."""

    settings: Mapping[str, Allowed]
    shared: bool = False
    lasts: bool = True


def one_of(*values: str) -> Allowed:
    return Allowed(values.__contains__, f"one of {', '.join(values)}")


def whole(least: int, most: int) -> Allowed:
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
