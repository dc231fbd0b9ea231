"""Addresses of PostgreSQL and PgBouncer on sinkbench's own stacks, and variables of their services."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.conninfo import make_conninfo

from sinkbench.stack.endpoint import Endpoint
from sinkbench.stack.security import ACCOUNT, Security
from sinkbench.stack.spec import NOWHERE, Place
from sinkbench.topology import Node

PRIMARY_FILE = "postgres-primary"
"""The file in the data directory that names the primary while that is not the first node, or while roles change."""


def postgres_endpoint(place: Place) -> Endpoint:
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
    where = place.address(place.layout.of("pgbouncer")[0], "pgbouncer_port")
    return Endpoint(_dsn(place.security, *where, "pgbouncer"), shown=_shown(place.security, *where))


def _dsn(security: Security | None, host: str, port: int | str, database: str) -> str:
    """A connection string; `host` and `port` may be lists separated by commas."""
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
    """The connection string of the stack's database for a person, without the password."""
    mode = "" if security is None else " sslmode=verify-full"
    return f"host={host} user={ACCOUNT} port={port} dbname={ACCOUNT}{mode}"


def postgres_shared(place: Place) -> Mapping[str, str]:
    """PostgreSQL's variables for all services, with its account; see `postgres/run`."""
    return {
        # For connectors that search all nodes for the primary.
        "POSTGRES_HOSTS": ",".join(place.hosts("postgres_port")),
        "POSTGRES_STANDBYS": ",".join(place.layout.postgres.nodes[1:]),
        "POSTGRES_SYNCHRONOUS": "on" if place.layout.postgres.synchronous else "",
        "POSTGRES_DB": ACCOUNT,
        "POSTGRES_USER": ACCOUNT,
        "POSTGRES_PASSWORD": ACCOUNT,
        "POSTGRES_PRIMARY_FILE": f"{place.data}/{PRIMARY_FILE}",
    }


def postgres_own(place: Place, node: Node) -> Mapping[str, str]:
    if node.number == 1:
        return {"POSTGRES_NODE": node.name}
    host, port = place.address(place.layout.of("postgres")[0], "postgres_port")
    return {"POSTGRES_NODE": node.name, "POSTGRES_PRIMARY_HOST": host, "POSTGRES_PRIMARY_PORT": str(port)}


def postgres_needs(place: Place, node: Node) -> frozenset[str]:
    """A replica copies the primary. PgBouncer would start without PostgreSQL, but answer with errors."""
    primary = place.primary("postgres")
    return frozenset() if node.name == primary else frozenset({primary})
