"""Tries the connection of a connector's JDBC URL: a connector may hide PostgreSQL's answer, as Debezium's does."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sinkbench.services.access import LOOPBACK
from sinkbench.sinks.jdbcurl import POOLER, given, jdbc_url

SCHEME = "jdbc:postgresql:"
TIMEOUT_SECONDS = 5
# The parameters of pgjdbc that libpq has, too, under the same name.
SHARED = ("user", "password", "sslmode", "sslrootcert")
NO_FILE = "/nonexistent"
# libpq would look for these in the home directory, and show them to any host that a connector file names.
OF_THIS_ACCOUNT = ("passfile", "sslcert", "sslkey", "sslcrl")
# Kerberos tickets, which libpq would show to a host that asks for them.
NO_TICKET = {"gssencmode": "disable", "require_auth": "!gss,!sspi"}
_SWITCH = {**dict.fromkeys(("true", "yes", "1"), "on"), **dict.fromkeys(("false", "no", "0"), "off")}
# As a server reads them on its command line: `-c NAME=VALUE`, `-cNAME=VALUE` or `--NAME=VALUE`.
_OPTION = re.compile(r"(?:^|\s)(?:-c\s*|--)([\w.-]+)=(\S*)")


def refusal(config: Mapping[str, str], known: Iterable[str] = ()) -> str | None:
    """Tries the connection that a connector's configuration describes. Returns PostgreSQL's error in one line; None if
    it connects, or cannot be tried because only the workers know its password or host. `known` are connection strings
    of the stack's own servers; see `conninfo_of`.
    """
    conninfo = _tried_from_here(config, known)
    if conninfo is None:
        return None
    try:
        psycopg.connect(alone(conninfo), connect_timeout=TIMEOUT_SECONDS).close()
    except psycopg.OperationalError as error:
        # Without a password, a request for one means nothing.
        if error.pgconn is not None and error.pgconn.needs_password and "password=" not in conninfo:
            return None
        return " ".join(str(error).strip().splitlines()[0].split())
    return None


def read_only(config: Mapping[str, str], known: Iterable[str] = (), *, anywhere: bool = False) -> bool | None:
    """Whether the database of a connector's configuration takes no writes: it is a standby, or set so. None if it does
    not connect or cannot be tried from here. A password that only the workers know comes from one of `known` with the
    same host, port and user, or with the same user if `anywhere` and the host is this machine, where all is one
    person's.
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
    """The `synchronous_commit` that a connector's sessions set by their URL's `options=-c NAME=VALUE`. None if they set
    none, or use the stack's PgBouncer, which does not pass it on: 1.18 refuses clients that have any.
    """
    url = jdbc_url(config)
    if url is None or POOLER in given(config)[0]:
        return None
    # The last one counts, as for the server.
    found = {name.replace("-", "_").lower(): value for name, value in _OPTION.findall(url.options.get("options", ""))}
    commit = found.get("synchronous_commit")
    return None if commit is None else _SWITCH.get(commit.lower(), commit.lower())


def alone(conninfo: str) -> str:
    """A connection string that uses nothing of this account: no password, certificate, ticket, or CA but its own."""
    # An empty password keeps libpq from that of the environment. Without `sslmode` the driver uses "prefer", whatever
    # the environment says. With a CA of this account libpq would verify by it.
    default = {"password": "", "sslmode": "prefer", "sslrootcert": NO_FILE}
    own = {key: str(value) for key, value in conninfo_to_dict(conninfo).items()}
    return make_conninfo("", **{**default, **own, **dict.fromkeys(OF_THIS_ACCOUNT, NO_FILE), **NO_TICKET})


def with_password(conninfo: str, known: Iterable[str], *, anywhere: bool) -> str:
    """Adds the password of one of `known` that is for the same server; see `read_only`."""
    asked = conninfo_to_dict(conninfo)
    # A remote host that a connector file names could ask for it in plain text.
    same = ("user",) if anywhere and asked.get("host") in LOOPBACK else ("host", "port", "user")
    if "password" in asked:
        return conninfo
    for each in map(conninfo_to_dict, known):
        if each.get("password") and all(str(each.get(key)) == str(asked.get(key)) for key in same):
            return make_conninfo(conninfo, password=each["password"])
    return conninfo


def _tried_from_here(config: Mapping[str, str], known: Iterable[str]) -> str | None:
    """The connection string, if its host can be resolved here."""
    conninfo = conninfo_of(config, known)
    is_here = conninfo is not None and _is_host_here(str(conninfo_to_dict(conninfo)["host"]))
    return conninfo if is_here else None


def _is_host_here(host: str) -> bool:
    """Whether a host's name can be resolved here; a network of containers has others."""
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False


def conninfo_of(config: Mapping[str, str], known: Iterable[str] = ()) -> str | None:
    """libpq's connection string for `connection.url`, `.username` and `.password`; None if the URL is no such address,
    or its host is unknown. Leaves out values with a variable, which only the workers know. `known` are connection
    strings of the stack's own servers. The URL may name the CA of one of these; any other file is left out, since libpq
    would open it, and the server is not verified.
    """
    url, user, password = given(config)
    address, _, query = url.removeprefix(SCHEME).partition("?")
    if not url.startswith(f"{SCHEME}//") or "${" in address:
        return None
    try:
        found = urlsplit(address)
        host, port = found.hostname, found.port
    except ValueError:
        # Several hosts, of which any could be meant, or an incomplete IPv6 address.
        return None
    shared = {key: value for key, value in parse_qsl(query) if key in SHARED and "${" not in value}
    if not shared.get("sslmode", "").startswith("verify-"):
        # The driver does not read it then, either.
        shared.pop("sslrootcert", None)
    elif shared.get("sslrootcert") not in {conninfo_to_dict(each).get("sslrootcert") for each in known} - {None}:
        # A file on the workers, or any file that a connector file names.
        shared = {**shared, "sslmode": "require", "sslrootcert": ""}
    parts = {
        **shared,
        **({"user": user} if user else {}),
        **({"password": password} if password else {}),
        "host": host or "localhost",
        "port": str(port or 5432),
        "dbname": found.path.lstrip("/"),
    }
    # libpq would take a zero byte for the end of the string.
    if any("\0" in value for value in parts.values()):
        return None
    return make_conninfo("", **{key: value for key, value in parts.items() if value and "${" not in value})
