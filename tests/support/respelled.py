"""JSON as a sink may give it back: the same value in another text."""

import json
from decimal import Decimal
from random import Random
from typing import Any


def respelled(value: Any, draw: Random, *, twice: bool = True) -> str:
    """The value with members in any order, some of them `twice`, and with numbers and texts in another spelling."""
    if isinstance(value, dict):
        members = [(name, respelled(each, draw, twice=twice)) for name, each in value.items()]
        draw.shuffle(members)
        dropped = [(name, "0") for name, _ in members if twice and draw.random() < 0.2]
        parts = [f"{_text(name, draw)}{draw.choice([':', ' : '])}{each}" for name, each in (*dropped, *members)]
        return f"{{{draw.choice([',', ', ', ' ,']).join(parts)}}}"
    if isinstance(value, list):
        return f"[{draw.choice([',', ', ']).join(respelled(each, draw, twice=twice) for each in value)}]"
    if isinstance(value, str):
        return _text(value, draw)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return _number(value, draw)


def _text(text: str, draw: Random) -> str:
    return json.dumps(text, ensure_ascii=draw.random() < 0.5 or not text.isprintable())


def _number(value: float | Decimal, draw: Random) -> str:
    if isinstance(value, Decimal):
        return draw.choice([f"{value}", f"{value:f}", f"{value:E}".lower()])
    if isinstance(value, int):
        return draw.choice([f"{value}", f"{value}.0", f"{value}e0", f"{value}00E-2" if value else "0E9"])
    text = repr(value)
    return draw.choice([text, text.replace("e", "E"), text if "e" in text else f"{text}0"])
