"""How a secured stack is reached, and what its services are told: a folder with certificates, and a password of each.

`securing.py` makes the folder of a local stack, `containersecurity.py` those of containers:

- `ca.pem`: the authority's certificate, which clients trust; of a local stack another one after each start.
- `node.pem`, `node.key`: the certificate of all nodes, and its key.
- `passwords`: NAME=password for each service; they stay.
- what services read, as `securityfiles.py` says it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from sinkbench.secrets import conceal
from sinkbench.services.access import Access

__all__ = ["ACCOUNT", "OF_CONTAINERS", "SERVICES", "WITHOUT_SECURITY", "Security", "kept_security"]

ACCOUNT = "sinkbench"
"""The user of every service, and PostgreSQL's database. Without security it is its password, too."""
WITHOUT_SECURITY = {
    "ELASTICSEARCH_TLS": "false",
    "POSTGRES_CA": "",
    "POSTGRES_SSLMODE": "prefer",
}
"""What connector files refer to, where services want no passwords."""
SERVICES = ("kafka", "connect", "elasticsearch", "postgres", "keystore")
"""What has a password; PgBouncer's users are those of PostgreSQL."""
OF_CONTAINERS = (*SERVICES, "loadgen")
"""What has one in containers, where a load generator is a service, too."""


@dataclass(frozen=True)
class Security:
    """What clients and services of a secured stack need.

    Attributes:
        folder: where the files are, as their readers find them; see above.
        passwords: by the service's name.
    """

    folder: Path
    passwords: Mapping[str, str] = field(repr=False)

    @property
    def ca(self) -> Path:
        """The certificate that clients trust."""
        return self.folder / "ca.pem"

    def access(self, service: str) -> Access:
        """How an HTTP service of the stack is asked."""
        return Access(user=ACCOUNT, password=self.passwords[service], ca=self.ca)

    @property
    def lines(self) -> str:
        """A line NAME=password for each service."""
        return "".join(f"{name}={each}\n" for name, each in self.passwords.items())

    @property
    def kafka_settings(self) -> dict[str, str]:
        """What Kafka's clients want, by librdkafka's names."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": ACCOUNT,
            "sasl.password": self.passwords["kafka"],
            "ssl.ca.location": str(self.ca),
        }

    @property
    def environment(self) -> dict[str, str]:
        """What the run scripts are told, and what connector files refer to by ${env:...}."""
        return {
            "TLS_CA": str(self.ca),
            "TLS_CERTIFICATE": str(self.folder / "node.pem"),
            "TLS_KEY": str(self.folder / "node.key"),
            "KAFKA_CA": str(self.ca),
            "KAFKA_KEYSTORE": str(self.folder / "bundle.pem"),
            "KAFKA_USER": ACCOUNT,
            "KAFKA_PASSWORD": self.passwords["kafka"],
            "CONNECT_KEYSTORE": str(self.folder / "node.p12"),
            "CONNECT_TRUSTSTORE": str(self.folder / "ca.p12"),
            "CONNECT_KEYSTORE_PASSWORD": self.passwords["keystore"],
            "CONNECT_USERS": str(self.folder / "users-connect"),
            "ELASTICSEARCH_USERS": str(self.folder / "users-elasticsearch"),
            # For connector files.
            "ELASTICSEARCH_CA": str(self.ca),
            "ELASTICSEARCH_TLS": "true",
            "ELASTICSEARCH_USER": ACCOUNT,
            "ELASTICSEARCH_PASSWORD": self.passwords["elasticsearch"],
            # Camel reads this file by itself. Connector files could not leave out what is in it where there is no TLS,
            # and Camel refuses empty values. Camel 3.21 overlooks a component's own variables, but not these.
            "CAMEL_COMPONENT_PROPERTIES_LOCATION": f"file:{self.folder / 'camel.properties'}",
            "CAMEL_COMPONENT_PROPERTIES_ENCODING": "UTF-8",
            "POSTGRES_CA": quote(str(self.ca)),
            "POSTGRES_PASSWORD": self.passwords["postgres"],
            "POSTGRES_SSLMODE": "verify-full",
        }


def kept_security(folder: Path, services: Collection[str] = SERVICES) -> Security | None:
    """What the folder of a stack holds that was started before, with passwords of these; None if it was not."""
    try:
        lines = (folder / "passwords").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    passwords = {name: conceal(password) for name, _, password in (line.partition("=") for line in lines)}
    return Security(folder, passwords) if passwords.keys() >= set(services) else None
