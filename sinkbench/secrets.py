"""Secrets that must not leave the process: whoever reads one says so, and whatever is written or printed is cleaned.

A secret can come back in what a service answers, in a stack trace or in an address, so every place where text leaves
(the terminal, a run's folder) asks `redacted` first, and nobody else has to think of it.
"""

from __future__ import annotations

import html
import json
from urllib.parse import quote, quote_plus

from pydantic import JsonValue

__all__ = ["HIDDEN", "SHORTEST", "conceal", "redacted", "redacted_values"]

SHORTEST = 4
"""Fewer characters are in every other word: to replace them would hide everything and protect nothing."""

HIDDEN = "***"
"""What stands where a secret was."""

_forms: set[str] = set()


def conceal(secret: str) -> str:
    """Has `redacted` replace this text from now on, and returns it as it is."""
    if len(secret) >= SHORTEST:
        _forms.update(_written(secret))
    return secret


def _written(secret: str) -> set[str]:
    """The ways in which a service, or a message of ours, may write the secret."""
    plain = {secret, secret.strip(), *secret.split("\n"), repr(secret)[1:-1]}
    # libpq's connection strings put a backslash before these two.
    plain.add(secret.replace("\\", "\\\\").replace("'", "\\'"))
    quoted = {quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret)}
    once = plain | quoted
    # JSON within JSON, such as Connect's own answer inside a trial's record, is escaped twice.
    escaped = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in once for ascii_only in (True, False)}
    twice = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in escaped for ascii_only in (True, False)}
    return {form for form in once | escaped | twice if len(form) >= SHORTEST}


def redacted(text: str) -> str:
    """`text` with every secret of four characters and more replaced by `***`, also where it is quoted or escaped."""
    found = [form for form in _forms if form in text]
    # What is left beside a replacement may make up another secret. Each round makes the text shorter.
    while found:
        for form in sorted(found, key=len, reverse=True):
            text = text.replace(form, HIDDEN)
        found = [form for form in _forms if form in text]
    return text


def redacted_values(content: JsonValue) -> JsonValue:
    """The same content with all its texts redacted; keys and numbers, which programs rely on, stay."""
    if isinstance(content, str):
        return redacted(content)
    if isinstance(content, list):
        return [redacted_values(item) for item in content]
    if isinstance(content, dict):
        return {key: redacted_values(value) for key, value in content.items()}
    return content
