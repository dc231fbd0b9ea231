"""Files as somebody, or a bad disk, may have changed them: for fuzzing what reads them.

Made by a `random.Random`, whose seed a test has from hypothesis: strategies of its own take longer than most readers.
"""

import copy
import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

Place = tuple[Any, ...]

# Values that programs have stumbled over.
NASTY: Sequence[Any] = (
    *(None, True, False, [], {}, [[]], {"": None}, [None], {"a": {"b": {"c": 1}}}),
    *(0, -1, 1, 2, 10**6, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 0.5, -0.0, 1e-320, 1e308, -1e308),
    *(float("nan"), float("inf"), float("-inf")),
    *("", " ", "\n", "\0", "\ud800", "é" * 300, "a" * 3_000, "null", "nan", "1e999", "9" * 5_000, "true"),
    *("<script>alert(1)</script>", "'; DROP TABLE x; --", '"', "\\", "%s%n{0}{name}", "\u202e\u2028", "\x1b[31m"),
    *("../../../etc/passwd", "/dev/zero", "~nobody-here/x", "${env:HOME}", "${file:/etc/passwd:x}", "!!python/object"),
    *("2026-13-45", "2026-01-01", "jdbc:postgresql://[::1", "http://[", "http://u:p@h:99999/", "kafka://", "-", "."),
)
_NAMES = tuple(each for each in NASTY if isinstance(each, str))
_SIGNS = "\0 \n \r\n \t \" ' { } [ ] : , - # &a *a !! | > ? = ~ \\ ${ --- ... %YAML <<: NaN 1e999 .nan 0x \\u0000 a=b"
_BYTES = (
    *(sign.encode() for sign in _SIGNS.split(" ")),
    *(b" ", b": ", b"- ", b"\n---\n", b"\x80", b"\xef\xbb\xbf", b"\xed\xa0\x80", "é".encode(), b"\x1b[2J"),
    *(b"9" * 400, b"[" * 400, b"{a: " * 200, b" " * 400),
)


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where each value is below, as keys and numbers."""
    yield place
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in below:
        yield from _places(each, (*place, key))


def _at(content: Any, place: Place) -> Any:
    for step in place:
        content = content[step]
    return content


def _with(content: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    _at(content, place[:-1])[place[-1]] = value
    return content


def changed_json(random: Random, content: Any, also: Sequence[Any] = ()) -> bytes:
    """The content as JSON, which YAML is, too: one to three values replaced, removed, wrapped, doubled or added.

    `also`: more values to put in.
    """
    made = copy.deepcopy(content)
    for _ in range(random.randint(1, 3)):
        places = list(_places(made))
        place = random.choice(places)
        found, what = _at(made, place), random.randrange(8)
        new: Any = copy.deepcopy(random.choice((*NASTY, *also)))
        if what == 3 and place:
            del _at(made, place[:-1])[place[-1]]
            continue
        if what == 4:
            new = random.choice(([found], {"a": found}))
        elif what == 5:
            new = copy.deepcopy(_at(made, random.choice(places)))
        elif what == 6 and isinstance(found, list):
            new = found + copy.deepcopy(found)
        elif what == 6 and isinstance(found, dict):
            new = {**found, random.choice(_NAMES): new}
        elif what == 7 and not isinstance(found, list | dict):
            new = f"{found}{random.choice(_BYTES).decode('utf-8', 'replace')}"
        made = _with(made, place, new)
    return json.dumps(made).encode()


def changed_values(random: Random, content: Any) -> bytes:
    """The content as JSON, one to three of its values others of the same kind, so that a model takes most of them."""
    made = copy.deepcopy(content)
    places = [place for place in _places(made) if place and not isinstance(_at(made, place), dict | list)]
    for place in random.sample(places, random.randint(1, 3)):
        found = _at(made, place)
        alike = int | float if isinstance(found, int | float) and not isinstance(found, bool) else type(found)
        made = _with(made, place, random.choice([each for each in NASTY if isinstance(each, alike)] or [1, 0.5, "x"]))
    return json.dumps(made).encode()


def changed_bytes(random: Random, content: bytes) -> bytes:
    """The bytes with one to four places cut out, put in, repeated or flipped; at times any bytes at all."""
    if random.randrange(20) == 0:
        return random.randbytes(random.randrange(200))
    made = content
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(made))
        end, what = at + random.randint(0, 12), random.randrange(9)
        if what == 8:
            made = made[:at]
            continue
        new = (b"", random.choice(_BYTES), made[at:end] * 3, random.randbytes(random.randrange(4)))[what // 2]
        made = made[:at] + new + made[at if what == 2 else end :]
    return made
