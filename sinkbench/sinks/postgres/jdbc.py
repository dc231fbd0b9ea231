"""The connection that a connector's configuration describes by a JDBC URL, tried from here.

A connector may keep to itself what PostgreSQL has answered: without a connection, Debezium's says "Unable to determine
Dialect".
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sinkbench.services.access import LOOPBACK
from sinkbench.sinks.jdbcurl import POOLER, given, jdbc_url

__all__ = ["NO_FILE", "alone", "conninfo_of", "own_commit", "read_only", "refusal", "with_password"]

SCHEME = "jdbc:postgresql:"
TIMEOUT_SECONDS = 5
# Of pgjdbc's many parameters those that libpq has, too, under the same name.
SHARED = ("user", "password", "sslmode", "sslrootcert")
NO_FILE = "/nonexistent"
# libpq would look for these in the home folder, and show them to whatever host a connector file names.
OF_THIS_ACCOUNT = ("passfile", "sslcert", "sslkey", "sslcrl")
# Of Kerberos, which libpq would show to a host that asks for it.
NO_TICKET = {"gssencmode": "disable", "require_auth": "!gss,!sspi"}
_SWITCH = {**dict.fromkeys(("true", "yes", "1"), "on"), **dict.fromkeys(("false", "no", "0"), "off")}
# As a server reads them on its command line: `-c NAME=VALUE`, `-cNAME=VALUE` or `--NAME=VALUE`.
_OPTION = re.compile(r"(?:^|\s)(?:-c\s*|--)([\w.-]+)=(\S*)")


def refusal(config: Mapping[str, str], known: Iterable[str] = ()) -> str | None:
    """What comes of the connection that a connector's configuration describes.

    Args:
        config: of the connector.
        known: connection strings of the stack's own servers; see `conninfo_of`.

    Returns:
        PostgreSQL's answer, or why there is none, in one line. None if the connection comes about, or if the
        configuration describes none that can be tried from here: only the workers know its password, or its host.
    """
    conninfo = _tried_from_here(config, known)
    if conninfo is None:
        return None
    try:
        psycopg.connect(alone(conninfo), connect_timeout=TIMEOUT_SECONDS).close()
    except psycopg.OperationalError as error:
        # Without a password, that one is asked for tells nothing.
        if error.pgconn is not None and error.pgconn.needs_password and "password=" not in conninfo:
            return None
        return " ".join(str(error).strip().splitlines()[0].split())
    return None


def read_only(config: Mapping[str, str], known: Iterable[str] = (), *, anywhere: bool = False) -> bool | None:
    """Whether what a connector's configuration connects to takes no writes: it follows another server, or is told so.

    Args:
        config: of the connector.
        known: connection strings of servers whose password is known; one that only the workers know is taken from
            there, if host, port and user are the same. Their CA is taken, too; see `conninfo_of`.
        anywhere: whether it is taken for any server of this machine, too: all of them are the same person's.

    Returns:
        None if the connection does not come about, or cannot be tried from here.
    """
    known = tuple(known)
    conninfo = _tried_from_here(config, known)
    if conninfo is None:
        return None
    try:
        own = alone(with_password(conninfo, known, anywhere=anywhere))
        with psycopg.connect(own, connect_timeout=TIMEOUT_SECONDS, prepare_threshold=None) as connection:
            rows = connection.execute("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'")
            return bool(rows.fetchall()[0][0])
    except psycopg.Error:
        return None


def own_commit(config: Mapping[str, str]) -> str | None:
    """The `synchronous_commit` that a connector's sessions set themselves, by its URL's `options=-c NAME=VALUE`.

    None if they set none, or go through the stack's PgBouncer, which does not hand them on: 1.18 refuses who has any.
    """
    url = jdbc_url(config)
    if url is None or POOLER in given(config)[0]:
        return None
    # Of several the last counts, as for the server.
    found = {name.replace("-", "_").lower(): value for name, value in _OPTION.findall(url.options.get("options", ""))}
    commit = found.get("synchronous_commit")
    return None if commit is None else _SWITCH.get(commit.lower(), commit.lower())


def alone(conninfo: str) -> str:
    """A connection string that takes nothing of this account: password, certificate, ticket, and no CA but its own."""
    # An empty password is none, but keeps libpq from that of the environment. How the driver would connect without
    # `sslmode` is "prefer", whatever the environment says; and with a CA of this account libpq would verify by it.
    default = {"password": "", "sslmode": "prefer", "sslrootcert": NO_FILE}
    own = {key: str(value) for key, value in conninfo_to_dict(conninfo).items()}
    return make_conninfo("", **{**default, **own, **dict.fromkeys(OF_THIS_ACCOUNT, NO_FILE), **NO_TICKET})


def with_password(conninfo: str, known: Iterable[str], *, anywhere: bool) -> str:
    """The connection string with the password of one of `known` that is for the same server; see `read_only`."""
    asked = conninfo_to_dict(conninfo)
    # A host elsewhere that a connector file names could ask for it in plain text.
    same = ("user",) if anywhere and asked.get("host") in LOOPBACK else ("host", "port", "user")
    if "password" in asked:
        return conninfo
    for each in map(conninfo_to_dict, known):
        if each.get("password") and all(str(each.get(key)) == str(asked.get(key)) for key in same):
            return make_conninfo(conninfo, password=each["password"])
    return conninfo


def _tried_from_here(config: Mapping[str, str], known: Iterable[str]) -> str | None:
    """The connection string, if it leads to a host that is known here."""
    conninfo = conninfo_of(config, known)
    is_here = conninfo is not None and _is_host_here(str(conninfo_to_dict(conninfo)["host"]))
    return conninfo if is_here else None


def _is_host_here(host: str) -> bool:
    """Whether a host's name means anything here; within a network of containers there are others."""
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False


def conninfo_of(config: Mapping[str, str], known: Iterable[str] = ()) -> str | None:
    """libpq's connection string for `connection.url`, `.username` and `.password`; None if the URL is no such address.

    A value with a variable in it, which only the workers know, is left out. Without the host there is no address.

    Args:
        config: of the connector.
        known: connection strings of the stack's own servers. The URL may name the CA of one of these, by which the
            server is then verified. Any other file is left out, and the server is not verified: libpq would open it.
    """
    url, user, password = given(config)
    address, _, query = url.removeprefix(SCHEME).partition("?")
    if not url.startswith(f"{SCHEME}//") or "${" in address:
        return None
    try:
        found = urlsplit(address)
        host, port = found.hostname, found.port
    except ValueError:
        # Several hosts, of which it cannot be told which one was meant; or half an address of IPv6.
        return None
    shared = {key: value for key, value in parse_qsl(query) if key in SHARED and "${" not in value}
    if not shared.get("sslmode", "").startswith("verify-"):
        # Neither does the driver read it then.
        shared.pop("sslrootcert", None)
    elif shared.get("sslrootcert") not in {conninfo_to_dict(each).get("sslrootcert") for each in known} - {None}:
        # A file of the workers', or whatever a connector file names.
        shared = {**shared, "sslmode": "require", "sslrootcert": ""}
    parts = {
        **shared,
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
