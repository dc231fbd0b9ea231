"""Further settings of the Kafka client, such as those for SASL and TLS. They are secret: no message shows a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from loadgen.errors import OptionsError
from loadgen.reading import read_option

TAKEN = (
    "security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https.", "socket.", "client.dns.", "broker.address.",
    "client.rack",
)  # fmt: skip
"""Prefixes of accepted settings; loadgen sets all others from a load's options."""

_KEY = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)+")
_LONG = 8


def read_client_config(path: Path | None) -> dict[str, str]:
    """Reads a settings file, only once since it may be /dev/fd/3; none without one. Raises OptionsError."""
    return {} if path is None else parse_client_config(read_option(path, "client-config"), f"client-config {path}")


def parse_client_config(text: str, name: str = "client-config") -> dict[str, str]:
    r"""Parses `key=value` lines; in the value of a key that ends in .pem, \n stands for a line end.

    Raises OptionsError, with `name` and the line's number, if a setting is not accepted.
    """
    settings: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
        if not line or line.startswith("#"):
            continue
        where = f"{name}, line {number}"
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not _KEY.fullmatch(key):
            # The line is not shown: it may be the rest of a secret.
            raise OptionsError(f"{where}: is not key=value with a setting of librdkafka as key; correct it")
        if not key.startswith(TAKEN):
            raise OptionsError(
                f"{where}: {key} is set by loadgen itself, from the load's options; leave it out. "
                f"Taken are those that begin with {', '.join(TAKEN)}"
            )
        if key in settings:
            raise OptionsError(f"{where}: {key} is given a second time; leave one of them")
        settings[key] = value.replace("\\n", "\n") if key.endswith(".pem") else value
    return settings


def format_client_config(settings: Mapping[str, str]) -> str:
    """The inverse of `parse_client_config`. Raises OptionsError if a key is not accepted or a value has two lines."""
    lines = []
    for key, value in settings.items():
        if not key.startswith(TAKEN):
            raise OptionsError(f"Kafka's setting {key}: is not one that a load generator takes; leave it out")
        text = value.strip().replace("\n", "\\n") if key.endswith(".pem") else value
        if text != text.strip() or "\n" in text:
            raise OptionsError(f"Kafka's setting {key}: a value must have no blank at its ends and no line break")
        lines.append(f"{key}={text}\n")
    return "".join(lines)


def hide(text: str, settings: Mapping[str, str]) -> str:
    """Returns a message of the Kafka client on one line, with *** in place of the values of `settings`."""
    for value in sorted(settings.values(), key=len, reverse=True):
        if len(value) >= _LONG:
            text = text.replace(value, "***")
        elif value:
            # A short value, such as "ssl", may be part of a setting's name, which the message needs.
            text = re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w.]*\w)", "***", text)
    return " ".join(text.split())
