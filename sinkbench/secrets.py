"""Secrets that must not leave the process: who reads one conceals it, and what is written or printed is redacted.

A service's answer, a stack trace or an address may quote a secret, so every way out (the terminal, a run's folder)
calls `redacted`.
"""

from __future__ import annotations

import html
import json
from urllib.parse import quote, quote_plus

from pydantic import JsonValue

__all__ = ["HIDDEN", "SHORTEST", "conceal", "redacted", "redacted_values"]

SHORTEST = 4
"""Fewer characters are part of too many words to be replaced."""

HIDDEN = "***"

_forms: set[str] = set()


def conceal(secret: str) -> str:
    """Makes `redacted` replace this text, and returns it."""
    if len(secret) >= SHORTEST:
        _forms.update(_written(secret))
    return secret


def _written(secret: str) -> set[str]:
    """How a service, or a message, may write the secret."""
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
    """The text with every secret of four characters or more as `***`, also if quoted or escaped."""
    # What is left around a replacement may make another secret. Each round shortens the text.
    while found := [form for form in _forms if form in text]:
        for form in sorted(found, key=len, reverse=True):
            text = text.replace(form, HIDDEN)
    return text


def redacted_values(content: JsonValue) -> JsonValue:
    """The content with all its texts redacted; keys and numbers, which programs rely on, stay."""
    if isinstance(content, str):
        return redacted(content)
    if isinstance(content, list):
        return [redacted_values(item) for item in content]
    if isinstance(content, dict):
        return {key: redacted_values(value) for key, value in content.items()}
    return content
