"""The connection that a connector's configuration describes by a JDBC URL, tried from here.

A connector may keep to itself what PostgreSQL has answered: without a connection, Debezium's says "Unable to determine
Dialect".
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

__all__ = ["conninfo_of", "refusal"]

SCHEME = "jdbc:postgresql:"
TIMEOUT_SECONDS = 5
# Of pgjdbc's many parameters those that libpq has, too, under the same name.
SHARED = ("user", "password", "sslmode")
# libpq would look for a password in the home folder, and send it to whatever host a connector file names.
NO_FILE = "/nonexistent"
POOL = re.compile(r"(camel\.beans\.[^.]+\.)url")


def refusal(config: Mapping[str, str]) -> str | None:
    """What comes of the connection that a connector's configuration describes.

    Returns:
        PostgreSQL's answer, or why there is none, in one line. None if the connection comes about, or if the
        configuration describes none that can be tried from here: only the workers know its password, or its host.
    """
    conninfo = conninfo_of(config)
    if conninfo is None or not _is_host_here(str(conninfo_to_dict(conninfo)["host"])):
        return None
    try:
        # An empty password is none, but keeps libpq from that of the environment.
        password = str(conninfo_to_dict(conninfo).get("password", ""))
        mine = make_conninfo(conninfo, passfile=NO_FILE, password=password)
        psycopg.connect(mine, connect_timeout=TIMEOUT_SECONDS).close()
    except psycopg.OperationalError as error:
        # Without a password, that one is asked for tells nothing.
        if error.pgconn is not None and error.pgconn.needs_password and "password=" not in conninfo:
            return None
        return " ".join(str(error).strip().splitlines()[0].split())
    return None


def _is_host_here(host: str) -> bool:
    """Whether a host's name means anything here; within a network of containers there are others."""
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False


def conninfo_of(config: Mapping[str, str]) -> str | None:
    """libpq's connection string for `connection.url`, `.username` and `.password`; None if the URL is no such address.

    The Camel sink has these as properties of a bean, its pool: `camel.beans.NAME.url` and so on. A value with a
    variable in it, which only the workers know, is left out. Without the host there is no address.
    """
    url, user, password = _given(config)
    address, _, query = url.removeprefix(SCHEME).partition("?")
    if not url.startswith(f"{SCHEME}//") or "${" in address:
        return None
    try:
        found = urlsplit(address)
        host, port = found.hostname, found.port
    except ValueError:
        # Several hosts, of which it cannot be told which one was meant; or half an address of IPv6.
        return None
    parts = {
        **{key: value for key, value in parse_qsl(query) if key in SHARED},
        **({"user": user} if user else {}),
        **({"password": password} if password else {}),
        "host": host or "localhost",
        "port": str(port or 5432),
        "dbname": found.path.lstrip("/"),
    }
    # libpq would take a zero byte for the end of all.
    if any("\0" in value for value in parts.values()):
        return None
    return make_conninfo("", **{key: value for key, value in parts.items() if value and "${" not in value})


def _given(config: Mapping[str, str]) -> tuple[str, str, str]:
    """URL, user and password as they are in the configuration; empty where it has none."""
    pool = next((found[1] for key in config if (found := POOL.fullmatch(key))), None)
    if pool is not None:
        return config[f"{pool}url"], config.get(f"{pool}username", ""), config.get(f"{pool}password", "")
    user = config.get("connection.username") or config.get("connection.user") or ""
    return config.get("connection.url", ""), user, config.get("connection.password", "")
