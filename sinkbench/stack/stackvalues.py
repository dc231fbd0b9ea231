"""The values of a stack file: what each kind may be, and how a secret that is written where it must not be is refused.

Each function is a validator of pydantic's: it takes what the file holds and returns what it stands for, or raises a
mistake, which never shows a value that may be a secret.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import ValidationInfo
from pydantic_core import PydanticCustomError

from sinkbench.secrets import conceal
from sinkbench.suggest import nearest
from sinkbench.yamlfile import mistake, shown

__all__ = [
    "address",
    "ca_file",
    "console_dsn",
    "dsn",
    "hide_misplaced",
    "kafka_settings",
    "secret",
    "several",
    "variables",
    "with_password",
]

AS_REFERENCE = "write it as {env: NAME} or {file: PATH}"

# What our clients of Kafka may be told; the rest (acks, batches, groups) is what sinkbench measures with.
KAFKA_SETTING = re.compile(
    r"(security|sasl|ssl|enable\.ssl|enable\.sasl|https|socket|client\.dns|broker\.address)\..+|client\.rack"
)
# Also a misspelt password is one.
KAFKA_SECRET = re.compile(r".*(pas|secret|\.pem|jaas).*")
KAFKA_FILE = re.compile(r".*\.(location|keytab)")
# A good guess at what a user meant by a setting that is not among these; librdkafka knows them all.
KAFKA_KNOWN = (
    "security.protocol",
    *("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password", "sasl.oauthbearer.config"),
    *("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.token.endpoint.url"),
    *("ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location"),
    *("ssl.key.pem", "ssl.key.password", "ssl.keystore.location", "ssl.keystore.password"),
    *("ssl.endpoint.identification.algorithm", "enable.ssl.certificate.verification", "client.dns.lookup"),
    *("socket.timeout.ms", "socket.keepalive.enable", "broker.address.family", "client.rack"),
)
# A name of a connector's variable that says that it holds a secret.
SECRET_NAME = re.compile(r"PASSW|PASSPHRASE|SECRET|TOKEN|API_?KEY|CREDENTIAL|PRIVATE", re.IGNORECASE)
DSN_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile")
# These words stand for themselves where a path may be given.
NOT_A_FILE = ("system", "probe")
# user:password@ in an address, password=... in a connection string.
MISPLACED = re.compile(r"://[^/@\s]*?:([^/\s]+)@|password\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s&']+))", re.IGNORECASE)


def secret(value: object, info: ValidationInfo) -> str:
    """The secret that `{env: NAME}` or `{file: PATH}` points to."""
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= {"env", "file"}:
        raise mistake(f"{{name}} must not stand in this file; {AS_REFERENCE}")
    ((kind, name),) = value.items()
    if not isinstance(name, str) or not name:
        raise mistake(f"{{name}}.{kind} must be text, found {shown(name)}", kind)
    if kind == "env":
        found = os.environ.get(name)
        if not found:
            state = "not set" if found is None else "empty"
            raise mistake(f"{{name}}: the environment variable {name} is {state}; set it", kind)
        return conceal(found)
    return conceal(_secret_in(_path(name, info), kind))


def _secret_in(path: Path, kind: str) -> str:
    try:
        text = path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise mistake(f"{{name}}: {path}: {error.strerror}; name a file that you can read", kind) from None
    except UnicodeDecodeError:
        raise mistake(f"{{name}}: {path}: is not UTF-8 text; save it as UTF-8", kind) from None
    if not text:
        raise mistake(f"{{name}}: {path}: is empty; write the secret to it", kind)
    return text


def _path(name: str, info: ValidationInfo) -> Path:
    return Path((info.context or {}).get("folder", Path()), Path(name).expanduser())


def _existing(name: str, info: ValidationInfo, *at: str) -> Path:
    path = _path(name, info)
    if not path.is_file():
        raise mistake(f"{{name}}: {path}: there is no such file", *at)
    if not os.access(path, os.R_OK):
        raise mistake(f"{{name}}: {path}: you cannot read it; check its permissions", *at)
    return path


def address(value: str) -> str:
    """An address of a service, without a slash at its end. User and password are keys of their own."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        raise mistake("{name} must be an address like https://host:8083") from None
    # Also without a scheme before it, as in user:password@host.
    if "@" in value:
        raise mistake(f"{{name}} must not hold a user or a password; use keys of their own, and {AS_REFERENCE}")
    if not usable or parts.query or parts.fragment:
        raise mistake(f"{{name}} must be an address like https://host:8083, found {shown(value)}")
    return value.rstrip("/")


def several(value: object) -> object:
    """One text stands for a list of it."""
    return [value] if isinstance(value, str) else value


def ca_file(value: object, info: ValidationInfo) -> Path:
    """A file with certificates."""
    if not isinstance(value, str):
        raise mistake(f"{{name}} must be a file, found {shown(value)}")
    path = _existing(value, info)
    try:
        ssl.create_default_context(cafile=path)
    except OSError:
        raise mistake(f"{{name}}: {path}: holds no certificate in PEM format") from None
    return path


def kafka_settings(value: object, info: ValidationInfo) -> dict[str, str]:
    """librdkafka's settings as it takes them, all text: secrets and paths resolved."""
    settings = {}
    for key, given in _mapping(value).items():
        if not KAFKA_SETTING.fullmatch(key):
            near = nearest(key, KAFKA_KNOWN)
            raise mistake(
                f"{{name}}.{key} is not a setting for SASL, TLS or addresses (by librdkafka's names)"
                + (f"; did you mean '{near}'?" if near else "; leave it out"),
                key,
            )
        if KAFKA_SECRET.fullmatch(key) and key not in ("ssl.ca.pem", "ssl.certificate.pem"):
            settings[key] = _within(key, given, info)
            continue
        text = _text(key, given)
        if KAFKA_FILE.fullmatch(key) and text not in NOT_A_FILE:
            text = str(_existing(text, info, key))
        settings[key] = text
    return settings


def variables(value: object, info: ValidationInfo) -> dict[str, str]:
    """What stands for ${env:NAME} in connector files; one whose name or value tells of a secret must be a reference."""
    found = {}
    for key, given in _mapping(value).items():
        if isinstance(given, dict) or SECRET_NAME.search(key):
            found[key] = _within(key, given, info)
            continue
        found[key] = _text(key, given)
        if MISPLACED.search(found[key]):
            raise mistake(f"{{name}}.{key} holds a password; {AS_REFERENCE}", key)
    return found


def _within(key: str, value: object, info: ValidationInfo) -> str:
    """A secret below a mapping whose keys pydantic does not know."""
    try:
        return secret(value, info)
    except PydanticCustomError as error:
        context = error.context or {}
        raise mistake(context["text"].replace("{name}", f"{{name}}.{key}"), key, *context["at"]) from None


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise mistake(f"{{name}} must be a mapping, found {shown(value)}")
    return {str(key): given for key, given in value.items()}


def _text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | str):
        return str(value)
    raise mistake(f"{{name}}.{key} must be text, a number, true or false, found {shown(value)}", key)


def dsn(value: object, info: ValidationInfo) -> str:
    """A connection string of libpq's, as key=value pairs, with its files found and no password in it."""
    if not isinstance(value, str):
        raise mistake(f"{{name}} must be a connection string, found {shown(value)}")
    try:
        parts: dict[str, Any] = conninfo_to_dict(value)
    # What libpq says of a string that it cannot read quotes from it.
    except psycopg.ProgrammingError:
        raise mistake("{name} must be a connection string like 'host=db port=5432 dbname=bench user=bench'") from None
    if "password" in parts:
        raise mistake(f"{{name}} must not hold a password; use the key 'password', and {AS_REFERENCE}")
    if "sslpassword" in parts:
        raise mistake("{name} must not hold sslpassword; give a sslkey that needs none")
    for key in DSN_FILES:
        if key in parts and parts[key] not in NOT_A_FILE:
            parts[key] = str(_existing(parts[key], info))
    return make_conninfo("", **parts)


def console_dsn(value: object, info: ValidationInfo) -> str:
    """A connection string of PgBouncer's console."""
    found = dsn(value, info)
    if conninfo_to_dict(found).get("dbname") != "pgbouncer":
        raise mistake("{name} must name dbname=pgbouncer, PgBouncer's own console")
    return found


def with_password(connection: str, password: str | None) -> str:
    """The connection string with a password in it."""
    return make_conninfo(connection, password=password) if password is not None else connection


def hide_misplaced(content: object) -> None:
    """Conceals what looks like a password inside a text, so that no message about another mistake shows it."""
    if isinstance(content, Mapping):
        for value in content.values():
            hide_misplaced(value)
    elif isinstance(content, list):
        for value in content:
            hide_misplaced(value)
    elif isinstance(content, str):
        for found in MISPLACED.finditer(content):
            conceal(next(filter(None, found.groups()), ""))
