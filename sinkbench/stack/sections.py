"""The sections of a stack file: pydantic models that reject unknown keys, and validators of their values, which return
the resolved value, or raise a mistake without secrets."""

import base64
import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from loadgen.reading import read_text
from sinkbench import yamlfile
from sinkbench.secrets import SECRET_NAME, conceal, holds_password
from sinkbench.services.access import Access
from sinkbench.stack import Endpoint
from sinkbench.yamlfile import mistake, shown

AS_REFERENCE = "write it as {env: NAME} or {file: PATH}"

# Settings of Kafka clients that a user may choose; sinkbench sets the others (acks, batches, groups).
KAFKA_SETTING = re.compile(
    r"(security|sasl|ssl|enable\.ssl|enable\.sasl|https|socket|client\.dns|broker\.address)\..+|client\.rack"
)
# Also matches a misspelt "password".
KAFKA_SECRET = re.compile(r".*(pas|secret|\.pem|jaas).*")
KAFKA_FILE = re.compile(r".*\.(location|keytab)")
# What to do about settings that Java's clients alone have.
OF_JAVA = {
    "sasl.jaas.config": "write sasl.username and sasl.password",
    "ssl.truststore.location": "write ssl.ca.location, a file in PEM format",
    **dict.fromkeys(("ssl.truststore.password", "ssl.truststore.type", "ssl.keystore.type"), "leave it out"),
}
# Values of path settings that are no paths.
NOT_A_FILE = ("system", "probe")


def secret(value: object, info: ValidationInfo) -> str:
    """Returns the secret that `{env: NAME}` or `{file: PATH}` refers to."""
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= {"env", "file"}:
        raise mistake(f"{{name}} must not stand in this file; {AS_REFERENCE}")
    ((kind, name),) = value.items()
    if not isinstance(name, str) or not name:
        raise mistake(f"{{name}}.{kind} must be text, found {shown(name)}", kind)
    if kind == "env":
        if not (found := os.environ.get(name)):
            state = "not set" if found is None else "empty"
            raise mistake(f"{{name}}: the environment variable {ascii(name)[1:-1]} is {state}; set it", kind)
        return conceal(found)
    path = existing_file(name, info, kind)
    text = read_text(path, lambda line: mistake(f"{{name}}: {line}", kind)).rstrip("\r\n")
    if not text:
        raise mistake(f"{{name}}: {path}: is empty; write the secret to it", kind)
    return conceal(text)


def existing_file(name: str, info: ValidationInfo, *at: str) -> Path:
    """Returns the path relative to the stack file; `at` is its key below the value under validation."""
    path = Path((info.context or {}).get("folder", Path()), os.path.expanduser(name))  # noqa: PTH111
    if not os.path.exists(path):  # noqa: PTH110 - it accepts any name
        raise mistake(f"{{name}}: {path}: there is no such file", *at)
    if not os.access(path, os.R_OK):
        raise mistake(f"{{name}}: {path}: you cannot read it; check its permissions", *at)
    return path


def address(value: str) -> str:
    """Returns an HTTP address without a trailing slash; it may not contain user and password."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        raise mistake("{name} must be an address like https://host:8083") from None
    # Checked first, since user:password@host has no scheme.
    if "@" in value:
        raise mistake(f"{{name}} must not hold a user or a password; use keys of their own, and {AS_REFERENCE}")
    if not usable or parts.query or parts.fragment:
        raise mistake(f"{{name}} must be an address like https://host:8083, found {shown(value)}")
    return value.rstrip("/")


def ca_file(value: object, info: ValidationInfo) -> Path:
    if not isinstance(value, str):
        raise mistake(f"{{name}} must be a file, found {shown(value)}")
    path = existing_file(value, info)
    try:
        ssl.create_default_context(cafile=path)
    except OSError:
        raise mistake(f"{{name}}: {path}: holds no certificate in PEM format") from None
    return path


def kafka_settings(value: object, info: ValidationInfo) -> dict[str, str]:
    """Returns librdkafka's settings as text, with secrets and paths resolved."""
    settings = {}
    for key, given in _mapping(value).items():
        if not KAFKA_SETTING.fullmatch(key):
            said = "is not a setting for SASL, TLS or addresses by librdkafka's names, such as ssl.ca.location"
            raise mistake(f"{{name}}.{key} {said}; correct it or leave it out", key)
        if key in OF_JAVA:
            raise mistake(f"{{name}}.{key} is a setting of Java's clients, not of librdkafka; {OF_JAVA[key]}", key)
        hidden = bool(KAFKA_SECRET.fullmatch(key)) and key not in ("ssl.ca.pem", "ssl.certificate.pem")
        text = _text(key, given, info, hidden=hidden)
        is_file = KAFKA_FILE.fullmatch(key) and text not in NOT_A_FILE
        settings[key] = str(existing_file(text, info, key)) if is_file else text
    return settings


def variables(value: object, info: ValidationInfo) -> dict[str, str]:
    """Returns the values of ${env:NAME} in connector files. Values that look secret must be references."""
    found = {}
    for key, given in _mapping(value).items():
        hidden = isinstance(given, dict) or SECRET_NAME.search(key) is not None
        found[key] = _text(key, given, info, hidden=hidden)
        if not hidden and holds_password(found[key]):
            raise mistake(f"{{name}}.{key} holds a password; {AS_REFERENCE}", key)
    return found


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise mistake(f"{{name}} must be a mapping, found {shown(value)}")
    return {str(key): given for key, given in value.items()}


def _text(key: str, value: object, info: ValidationInfo, *, hidden: bool) -> str:
    """A value in a mapping with free keys, which pydantic's messages would not name; a secret if `hidden`."""
    if hidden:
        try:
            return secret(value, info)
        except PydanticCustomError as error:
            context = error.context or {}
            raise mistake(context["text"].replace("{name}", f"{{name}}.{key}"), key, *context["at"]) from None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | str):
        return str(value)
    raise mistake(f"{{name}}.{key} must be text, a number, true or false, found {shown(value)}", key)


Secret = Annotated[str, BeforeValidator(secret)]
"""Written as `{env: NAME}` or `{file: PATH}`; validated to the secret itself."""
Url = Annotated[str, AfterValidator(address)]
Urls = Annotated[
    tuple[Url, ...], Field(strict=False), BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
CaFile = Annotated[Path, BeforeValidator(ca_file)]
Variables = Annotated[dict[str, str], BeforeValidator(variables)]


class StackSection(yamlfile.Section):
    @model_validator(mode="before")
    @classmethod
    def _is_a_mapping(cls, value: object) -> object:
        # A text in its place may be an address with a password: do not show it.
        if not isinstance(value, dict):
            raise mistake("{name} must be a mapping of keys to values")
        return value


class HttpSection(StackSection):
    user: str | None = None
    password: Secret | None = Field(default=None, repr=False)
    ca: CaFile | None = Field(default=None, description="certificates (PEM) that sign the service's own")

    @model_validator(mode="after")
    def _user_has_password(self) -> Self:
        if (self.user is None) != (self.password is None):
            one, other = ("user", "password") if self.password is None else ("password", "user")
            raise mistake(f"{{name}} has '{one}' and no '{other}'; give both or neither", one)
        return self

    @property
    def access(self) -> Access:
        if self.password is not None:
            # A service may repeat the header that it rejects.
            conceal(base64.b64encode(f"{self.user}:{self.password}".encode()).decode())
        return Access(user=self.user, password=self.password, ca=self.ca)


class SinkSection(StackSection):
    """The address of a sink's service."""

    address_key: ClassVar[str]
    """The key of the address: messages about the service name its line."""

    def endpoint(self) -> Endpoint:
        raise NotImplementedError

    def variables(self) -> Mapping[str, str]:
        """Returns the required values of ${env:NAME} in connector files, which override the workers' environment."""
        return {}
