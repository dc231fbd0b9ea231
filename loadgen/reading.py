"""Reads files and JSON from outside strictly.

Python's JSON reader accepts NaN, duplicate keys, and numbers that other programs read differently."""

import json
import math
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadgen.errors import OptionsError

MOST_BYTES = 1 << 20
"""More than a file written by a person has."""
# Deeper nesting could not be written again: each level takes calls in the writers, too.
_DEEPEST = 100
_LARGEST_INTEGER = 2**64
_DIGITS = 20
# Control characters, except tab and line feed, and those that change the direction of writing.
_UNPRINTABLE = {
    code: repr(chr(code))[1:-1]
    for code in (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
# Permissions of group and others.
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KIND = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def read_bytes(
    path: Path,
    error: Callable[[str], Exception],
    most_bytes: int = MOST_BYTES,
    *,
    private: bool = False,
    if_missing: str = "",
) -> bytes:
    """Returns the content of a file, or of an unnamed pipe, as in `<(...)`.

    A `private` file that others than its owner may use is refused. Raises the exception that `error` makes of a
    message, for a missing file with what to do `if_missing`, without which it is FileNotFoundError."""
    try:
        # A FIFO without a writer would block forever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            kind = stat.S_IFMT(found.st_mode)
            # A pipe from another command has no name in the file system.
            if kind != stat.S_IFREG and (kind != stat.S_IFIFO or path.resolve().exists()):
                raise error(f"{path}: is {_KIND.get(kind, 'no file')}; name a file")
            if private and stat.S_IMODE(found.st_mode) & _OTHERS:
                raise error(f"{path}: has a secret, which only its owner may use; run chmod 600 on it")
            os.set_blocking(descriptor, True)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = b"" if found.st_size > most_bytes else file.read(most_bytes + 1)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        if not if_missing:
            raise
        raise error(f"{path}: there is no such file; {if_missing}") from None
    except OSError as failed:
        raise error(f"{path}: cannot be read ({failed.strerror}); check its permissions") from None
    except ValueError as failed:
        # The path has a zero byte.
        raise error(f"{str(path)!r}: cannot be read ({failed}); name a file") from None
    if len(content) > most_bytes or found.st_size > most_bytes:
        raise error(f"{path}: has more than {most_bytes:,} bytes, which is not what is looked for; name another file")
    return content


def read_text(path: Path, error: Callable[[str], Exception], most_bytes: int = MOST_BYTES, **more: Any) -> str:
    """Returns the text of a UTF-8 file; see `read_bytes`."""
    content = read_bytes(path, error, most_bytes, **more)
    try:
        text = content.decode("utf-8-sig")
        wrong = text.find("\0")
    except UnicodeDecodeError as broken:
        text, wrong = content[: broken.start].decode("utf-8"), broken.start
    if wrong >= 0:
        raise error(f"{path}:{text.count(chr(10), 0, wrong) + 1}: is not UTF-8 text; save it as UTF-8")
    return text


def read_option(path: Path, option: str, *, private: bool = False) -> str:
    """Returns the text of the file of a command-line option. Raises OptionsError, also if there is none."""
    return read_text(path, lambda line: OptionsError(f"{option}: {line}"), private=private, if_missing="give another")


def printable(text: str) -> str:
    """Escapes, as Python does, what would move a terminal's cursor or look like something else."""
    return text.translate(_UNPRINTABLE)


def parse_json(text: str | bytes) -> Any:
    """Parses a JSON text. Raises ValueError if it is not JSON, or programs may read it differently.

    Numbers must be finite and whole numbers below 2^64, keys distinct, texts valid, and nesting at most 100 levels."""
    try:
        whole = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value = json.loads(
            whole, parse_constant=refuse_constant, parse_float=_finite, parse_int=_integer, object_pairs_hook=_distinct
        )
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except RecursionError:
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels") from None
    _check(value)
    return value


def refuse_constant(name: str) -> float:
    """For JSON's reader: NaN and Infinity."""
    raise ValueError(f"{name} is no number")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"the number {_short(text)} is too large")
    return value


def _integer(text: str) -> int:
    if len(text) > _DIGITS + 1 or abs(value := int(text)) >= _LARGEST_INTEGER:
        raise ValueError(f"the number {_short(text)} is too large")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {_short(repr(key))} stands there twice")
        found[key] = value
    return found


def _check(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += [*each, *each.values()]
            elif isinstance(each, list):
                below += each
            elif isinstance(each, str) and not each.isascii():
                try:
                    each.encode()
                except UnicodeEncodeError:
                    raise ValueError(f"the text {_short(ascii(each))} has half a character") from None
        if not below:
            return
        level = below
    raise ValueError(f"it is nested deeper than {_DEEPEST} levels")


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
