"""Base classes and types of a stack file's sections: pydantic models that reject unknown keys."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from sinkbench import yamlfile
from sinkbench.secrets import conceal
from sinkbench.services.access import Access
from sinkbench.stack import Endpoint
from sinkbench.stack.stackvalues import address, ca_file, secret
from sinkbench.yamlfile import mistake

Secret = Annotated[str, BeforeValidator(secret)]
"""Written as `{env: NAME}` or `{file: PATH}`; validated to the secret itself."""
Url = Annotated[str, AfterValidator(address)]
CaFile = Annotated[Path, BeforeValidator(ca_file)]


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
        for one, other in (("user", "password"), ("password", "user")):
            if getattr(self, one) is not None and getattr(self, other) is None:
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
