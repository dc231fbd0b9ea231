"""The database that a connector's configuration names by a JDBC URL. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from sinkbench.services.access import LOOPBACK

_SCHEME = re.compile(r"jdbc:([a-z]+):(?://)?([^/?]*)/?([^?]*)(?:\?(.*))?", re.DOTALL)
# The pooler's host in a connector file's URL, before the workers fill it in.
POOLER = "${env:PGBOUNCER_HOST}"
_PORTS = {"postgresql": "5432"}
# A pool of the Camel sink is a bean of its registry.
_POOL = re.compile(r"(camel\.beans\.[^.]+)\.url")


@dataclass(frozen=True)
class JdbcUrl:
    """A parsed JDBC URL. `kind` is the database, such as postgresql; `hosts` are given as host:port or host."""

    kind: str
    hosts: tuple[str, ...]
    database: str
    options: Mapping[str, str]

    def leads_to(self, address: str) -> bool:
        """Whether one of the hosts is `address` (host:port)."""
        return any(self._place(host) == self._place(address) for host in self.hosts)

    def _place(self, host: str) -> str:
        name, _, port = host.rpartition(":") if ":" in host else (host, "", "")
        return f"{'127.0.0.1' if name.strip('[]') in LOOPBACK else name}:{port or _PORTS.get(self.kind, '')}"


def pool_bean(config: Mapping[str, str]) -> str | None:
    """The key of the Camel sink's pool, as `camel.beans.NAME`; None if it has none."""
    return next((found[1] for key in config if (found := _POOL.fullmatch(key))), None)


def given(config: Mapping[str, str]) -> tuple[str, str, str]:
    """URL, user and password of a connector's configuration, or ""; Camel has them in a bean."""
    if (pool := pool_bean(config)) is not None:
        url, user, password = (config.get(f"{pool}.{key}", "") for key in ("url", "username", "password"))
        return url, user, password
    user = config.get("connection.username") or config.get("connection.user") or ""
    return config.get("connection.url", ""), user, config.get("connection.password", "")


def jdbc_url(config: Mapping[str, str]) -> JdbcUrl | None:
    """The JDBC URL of a connector's configuration; None if it has none."""
    if (found := _SCHEME.fullmatch(given(config)[0])) is None:
        return None
    hosts = tuple(host.strip() for host in found[2].split(",") if host.strip())
    return JdbcUrl(found[1], hosts, found[3], dict(parse_qsl(found[4] or "", keep_blank_values=True)))
