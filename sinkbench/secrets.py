"""Secrets must not leave the process: the code that reads one conceals it, and all output is redacted.

A service's answer, a stack trace or an address may quote a secret, so the terminal and a run's files use `redacted`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from urllib.parse import quote, quote_plus

from pydantic import JsonValue

SHORTEST = 4
"""Fewer characters are part of too many words to be replaced."""

HIDDEN = "***"

SECRET_NAME = re.compile(r"PASSW|PASSPHRASE|SECRET|TOKEN|API[._-]?KEY|CREDENTIAL|PRIVATE|JAAS", re.IGNORECASE)
"""What a setting is called that holds a secret."""

# user:password@ in an address, password=... in a connection string, a query or a line of JAAS.
_MISPLACED = re.compile(
    r"""://[^/@\s]*?:([^/\s]+)@|(?:password|passwd|pwd)\s*=\s*"""
    r"""(?:RAW\(([^)]*)\)|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s&'";]+))""",
    re.IGNORECASE,
)
WORDS = frozenset(
    ("true", "false", "null", "none", "password", "sinkbench", "kafka", "connect", "camel", "jdbc",
     "postgres", "postgresql", "elasticsearch", "elastic")
)  # fmt: skip
"""No secrets, since they are in every result: without them none could be read. Many use one as a password."""

_forms: set[str] = set()


def conceal(secret: str) -> str:
    """Makes `redacted` replace this text, and returns it. Names of services, which many use as a password, stay."""
    if len(secret) >= SHORTEST and secret.casefold() not in WORDS:
        _forms.update(_written(secret))
    return secret


def conceal_in(settings: Mapping[str, object]) -> None:
    """Conceals a connector's secrets, by the names of keys or passwords in addresses; `${env:NAME}` and beans are
    none.
    """
    for key, value in settings.items():
        text = str(value)
        if SECRET_NAME.search(key) and not text.startswith(("${", "#class:", "#bean:")):
            conceal(text)
        conceal_misplaced(value)


def conceal_misplaced(content: object) -> None:
    """Conceals what looks like a password in any text within the content."""
    if isinstance(content, Mapping | list | tuple):
        for value in content.values() if isinstance(content, Mapping) else content:
            conceal_misplaced(value)
    elif isinstance(content, str):
        for found in _MISPLACED.finditer(content):
            password = next(filter(None, found.groups()), "")
            if not password.startswith("${"):
                conceal(password)


def holds_password(text: str) -> bool:
    """Whether a password seems to stand in the text, as in an address."""
    return _MISPLACED.search(text) is not None


def _written(secret: str) -> set[str]:
    """How a service, or a message, may write the secret."""
    plain = {secret, secret.strip(), *secret.split("\n"), repr(secret)[1:-1]}
    # libpq's connection strings put a backslash before these two.
    plain.add(secret.replace("\\", "\\\\").replace("'", "\\'"))
    quoted = {quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret)}
    # As HTTP's headers are read, which know no other letters.
    headers = {secret.encode("ascii", "ignore").decode(), secret.encode("utf-8", "replace").decode("latin-1")}
    once = plain | quoted | headers
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
