"""Secrets must not leave the process: code that reads one conceals it, and the terminal and a run's files are redacted.
Answers of services, stack traces and addresses may quote a secret."""

import html
import json
import re
from collections.abc import Mapping
from urllib.parse import quote, quote_plus

from pydantic import JsonValue

SHORTEST = 4
"""Shorter texts are part of too many words to be replaced."""

HIDDEN = "***"

SECRET_NAME = re.compile(r"PASSW|PASSPHRASE|SECRET|TOKEN|API[._-]?KEY|CREDENTIAL|PRIVATE|JAAS", re.IGNORECASE)

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
"""Common passwords that cannot be redacted, since every result contains them."""

_forms: set[str] = set()


def conceal(secret: str) -> str:
    """Returns the text, which `redacted` will replace, except `WORDS`."""
    if len(secret) >= SHORTEST and secret.casefold() not in WORDS:
        _forms.update(_written(secret))
    return secret


def conceal_in(settings: Mapping[str, object]) -> None:
    """Conceals a connector's secrets, by names of keys and in addresses; `${env:NAME}` and beans are no secrets."""
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
    """Whether the text seems to contain a password, as in an address."""
    return _MISPLACED.search(text) is not None


def _written(secret: str) -> set[str]:
    """The forms in which a service or a message may write the secret."""
    plain = {secret, secret.strip(), *secret.split("\n"), repr(secret)[1:-1]}
    # In libpq's connection strings a backslash precedes these two.
    plain.add(secret.replace("\\", "\\\\").replace("'", "\\'"))
    quoted = {quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret)}
    # As HTTP headers are decoded, which have no other letters.
    headers = {secret.encode("ascii", "ignore").decode(), secret.encode("utf-8", "replace").decode("latin-1")}
    once = plain | quoted | headers
    # JSON within JSON, such as Connect's answer in a trial's record, is escaped twice.
    escaped = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in once for ascii_only in (True, False)}
    twice = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in escaped for ascii_only in (True, False)}
    return {form for form in once | escaped | twice if len(form) >= SHORTEST}


def redacted(text: str) -> str:
    """Returns the text with each concealed secret replaced by `***`, also if quoted or escaped."""
    # The text around a replacement may form another secret. Each round shortens the text.
    while found := [form for form in _forms if form in text]:
        for form in sorted(found, key=len, reverse=True):
            text = text.replace(form, HIDDEN)
    return text


def quoted(text: str, longest: int) -> str:
    """Returns a text for a message: redacted, on one line, and at most so long."""
    # Before it is cut, since a part of a secret would not be recognized.
    line = " ".join(redacted(text).split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def readable(text: str) -> str:
    """Returns a message for a person, redacted, without the middle of what has so many characters that nobody reads it:
    a word of input that it quotes, or a line."""
    shorter = re.sub(r"\S{300,}", lambda word: f"{word[0][:140]}...{word[0][-140:]}", redacted(text))
    return re.sub(r".{2000,}", lambda line: f"{line[0][:1000]}...{line[0][-900:]}", shorter)


def redacted_values(content: JsonValue) -> JsonValue:
    """Returns the content with all texts redacted; keys and numbers, on which programs rely, stay."""
    if isinstance(content, str):
        return redacted(content)
    if isinstance(content, list):
        return [redacted_values(item) for item in content]
    if isinstance(content, dict):
        return {key: redacted_values(value) for key, value in content.items()}
    return content
