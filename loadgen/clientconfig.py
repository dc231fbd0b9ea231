"""Further settings of the Kafka client, such as those for SASL and TLS: their file, and errors that keep them secret.

They are kept apart from `Load`, since whatever is in a load is printed, sent and stored. No value of theirs is ever in
a message: a secret may stand under the wrong key as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from loadgen.errors import OptionsError

__all__ = ["TAKEN", "format_client_config", "hide", "parse_client_config", "read_client_config"]

TAKEN = (
    "security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https.", "socket.", "client.dns.", "broker.address.",
    "client.rack",
)  # fmt: skip
"""What the key of a setting begins with; all other settings are made by loadgen itself, from a load's options."""

_KEY = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)+")
_LONG = 8


def read_client_config(path: Path) -> dict[str, str]:
    """The settings in a file; also one such as /dev/fd/3, which can be read once.

    Raises:
        OptionsError: it cannot be read, or a line of it is no setting that is taken.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise OptionsError(f"client-config: {path} cannot be read ({error.strerror}); give another file") from None
    except ValueError:
        raise OptionsError(f"client-config: {path} is not UTF-8; save it as such") from None
    return parse_client_config(text, f"client-config {path}")


def parse_client_config(text: str, name: str = "client-config") -> dict[str, str]:
    r"""The settings in a text of `key=value` lines (librdkafka's names), empty lines and lines that begin with #.

    In the value of a key that ends in .pem, \n stands for the end of a line.

    Args:
        text: the lines.
        name: what messages call the text.

    Raises:
        OptionsError: a line is no setting that is taken; one line that names it by its number.
    """
    settings: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        where = f"{name}, line {number}"
        key, equals, value = (part.strip() for part in stripped.partition("="))
        if not equals or not _KEY.fullmatch(key):
            # Not shown: it may be the rest of a secret.
            raise OptionsError(f"{where}: is not key=value with a setting of librdkafka as key; mend it")
        if not _is_taken(key):
            raise OptionsError(
                f"{where}: {key} is set by loadgen itself, from the load's options; leave it out. "
                f"Taken are {', '.join(each + '*' if each.endswith('.') else each for each in TAKEN)}"
            )
        if key in settings:
            raise OptionsError(f"{where}: {key} is given a second time; leave one of them")
        settings[key] = value.replace("\\n", "\n") if key.endswith(".pem") else value
    return settings


def _is_taken(key: str) -> bool:
    return any(key.startswith(each) if each.endswith(".") else key == each for each in TAKEN)


def format_client_config(settings: Mapping[str, str]) -> str:
    """The text that `parse_client_config` makes these settings of.

    Raises:
        OptionsError: a key is not taken, or a value cannot be written on a line; the value is not shown.
    """
    lines = []
    for key, value in settings.items():
        if not _is_taken(key):
            raise OptionsError(f"Kafka's setting {key}: is not one that a load generator takes; leave it out")
        lines.append(f"{key}={value.strip().replace(chr(10), chr(92) + 'n') if key.endswith('.pem') else value}")
        if not key.endswith(".pem") and (value != value.strip() or "\n" in value):
            raise OptionsError(f"Kafka's setting {key}: a value must have no blank at its ends and no line break")
    return "".join(f"{line}\n" for line in lines)


def hide(text: str, settings: Mapping[str, str]) -> str:
    """`text`, which the Kafka client has written, on one line and with *** for every value of `settings` in it."""
    for value in sorted(settings.values(), key=len, reverse=True):
        if len(value) >= _LONG:
            text = text.replace(value, "***")
        elif value:
            # A short one, such as "ssl", may be part of the name of a setting, which is what the message is about.
            text = re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w.]*\w)", "***", text)
    return " ".join(text.split())
