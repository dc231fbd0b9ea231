"""PostgreSQL and PgBouncer on the stacks of sinkbench: how they are reached, and the variables of services."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.conninfo import make_conninfo

from sinkbench.stack.endpoint import Endpoint
from sinkbench.stack.security import ACCOUNT, Security
from sinkbench.stack.spec import NOWHERE, Place
from sinkbench.topology import Node

__all__ = [
    "PRIMARY_FILE",
    "pgbouncer_endpoint",
    "postgres_endpoint",
    "postgres_needs",
    "postgres_own",
    "postgres_shared",
]

PRIMARY_FILE = "postgres-primary"
"""In the folder of all data: what names the primary while that is not the first node, or while roles change."""


def postgres_endpoint(place: Place) -> Endpoint:
    """The primary of that moment, and each node."""
    security, primary = place.security, place.primary("postgres")
    nodes = {node.name: place.address(node, "postgres_port") for node in place.layout.of("postgres")}
    found = {
        name: Endpoint(
            _dsn(security, host, port, ACCOUNT),
            shown=_shown(security, host, port),
            options={} if name == primary else {"role": "replica"},
        )
        for name, (host, port) in nodes.items()
    }
    reachable = [each for each in nodes.values() if each[1] != NOWHERE]
    if len(found) == 1 or not reachable:
        return found[primary]
    hosts, ports = (",".join(str(each[part]) for each in reachable) for part in (0, 1))
    return Endpoint(
        f"{_dsn(security, hosts, ports, ACCOUNT)} target_session_attrs=read-write",
        shown=_shown(security, hosts, ports),
        nodes=found,
    )


def pgbouncer_endpoint(place: Place) -> Endpoint:
    """Its console."""
    where = place.address(place.layout.of("pgbouncer")[0], "pgbouncer_port")
    return Endpoint(_dsn(place.security, *where, "pgbouncer"), shown=_shown(place.security, *where))


def _dsn(security: Security | None, host: str, port: int | str, database: str) -> str:
    """A connection string; `host` and `port` may each name several, separated by commas."""
    if security is None:
        return f"host={host} user={ACCOUNT} password={ACCOUNT} port={port} dbname={database}"
    return make_conninfo(
        host=host,
        user=ACCOUNT,
        password=security.passwords["postgres"],
        port=port,
        dbname=database,
        sslmode="verify-full",
        sslrootcert=str(security.ca),
    )


def _shown(security: Security | None, host: str, port: int | str) -> str:
    """The same of the stack's database, for a person, without a secret password."""
    if security is None:
        return _dsn(None, host, port, ACCOUNT)
    return f"host={host} user={ACCOUNT} port={port} dbname={ACCOUNT} sslmode=verify-full"


def postgres_shared(place: Place) -> Mapping[str, str]:
    """The variables of all services for PostgreSQL, and its account; `postgres/run` says what the names mean."""
    return {
        # For connectors that look for the primary among all nodes.
        "POSTGRES_HOSTS": ",".join(place.hosts("postgres_port")),
        "POSTGRES_STANDBYS": ",".join(place.layout.postgres.nodes[1:]),
        "POSTGRES_SYNCHRONOUS": "on" if place.layout.postgres.synchronous else "",
        "POSTGRES_DB": ACCOUNT,
        "POSTGRES_USER": ACCOUNT,
        "POSTGRES_PASSWORD": ACCOUNT,
        "POSTGRES_PRIMARY_FILE": f"{place.data}/{PRIMARY_FILE}",
    }


def postgres_own(place: Place, node: Node) -> Mapping[str, str]:
    """The variables of one node of PostgreSQL."""
    if node.number == 1:
        return {"POSTGRES_NODE": node.name}
    host, port = place.address(place.layout.of("postgres")[0], "postgres_port")
    return {"POSTGRES_NODE": node.name, "POSTGRES_PRIMARY_HOST": host, "POSTGRES_PRIMARY_PORT": str(port)}


def postgres_needs(place: Place, node: Node) -> frozenset[str]:
    """A replica copies the primary. PgBouncer would start without PostgreSQL, but answers with errors."""
    primary = place.primary("postgres")
    return frozenset() if node.name == primary else frozenset({primary})
