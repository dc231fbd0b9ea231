"""How a secured stack is reached: `ca.pem`, which clients trust, `node.pem` and `node.key` of all nodes, and
`passwords`. The passwords are kept; a local stack's certificates are new after each start."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from sinkbench.secrets import conceal
from sinkbench.services.access import Access

ACCOUNT = "sinkbench"
"""The user of every service, and PostgreSQL's database; without security also the password."""
WITHOUT_SECURITY = {
    **dict.fromkeys(("ELASTICSEARCH_CA", "ELASTICSEARCH_PASSWORD", "ELASTICSEARCH_USER", "POSTGRES_CA"), ""),
    "ELASTICSEARCH_TLS": "false",
    "POSTGRES_SSLMODE": "prefer",
}
"""The variables of connector files if services require no passwords."""
SERVICES = ("kafka", "connect", "elasticsearch", "postgres", "keystore")
"""Names of the passwords; PgBouncer's users are those of PostgreSQL."""
OF_CONTAINERS = (*SERVICES, "loadgen")
"""In containers a load generator is a service too."""


@dataclass(frozen=True)
class Security:
    """What clients and services of a secured stack need: `folder` as its readers see it, `passwords` by service."""

    folder: Path
    passwords: Mapping[str, str] = field(repr=False)

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    def access(self, service: str) -> Access:
        return Access(user=ACCOUNT, password=self.passwords[service], ca=self.ca)

    @property
    def lines(self) -> str:
        return "".join(f"{name}={each}\n" for name, each in self.passwords.items())

    @property
    def kafka_settings(self) -> dict[str, str]:
        """By librdkafka's names."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": ACCOUNT,
            "sasl.password": self.passwords["kafka"],
            "ssl.ca.location": str(self.ca),
        }

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the run scripts, and those that connector files refer to by ${env:...}."""
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
            # Camel reads this file itself. Connector files could not omit these settings if there is no TLS, and Camel
            # rejects empty values. Camel 3.21 ignores a component's own variables, but not these.
            "CAMEL_COMPONENT_PROPERTIES_LOCATION": f"file:{self.folder / 'camel.properties'}",
            "CAMEL_COMPONENT_PROPERTIES_ENCODING": "UTF-8",
            "POSTGRES_CA": quote(str(self.ca)),
            "POSTGRES_PASSWORD": self.passwords["postgres"],
            "POSTGRES_SSLMODE": "verify-full",
        }


def kept_security(folder: Path, services: Collection[str] = SERVICES) -> Security | None:
    """Returns what the folder of a started stack contains; None if it lacks the password of one of these services."""
    try:
        lines = (folder / "passwords").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    passwords = {name: conceal(password) for name, _, password in (line.partition("=") for line in lines)}
    return Security(folder, passwords) if passwords.keys() >= set(services) else None
