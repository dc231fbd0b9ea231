"""Users of loadgen's HTTP interface, with HTTP basic authentication."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Collection, Mapping
from pathlib import Path

from starlette.authentication import AuthCredentials, AuthenticationBackend, AuthenticationError, SimpleUser
from starlette.requests import HTTPConnection

from loadgen.errors import OptionsError
from loadgen.reading import read_text

REFUSAL = "Authorization: no known user and password; give those of a user in the file of --users"


class Users(AuthenticationBackend):
    """Authenticates users by password; open paths need none."""

    def __init__(self, users: Mapping[str, str], open_paths: Collection[str] = ()) -> None:
        self._known = [f"{user}:{password}".encode() for user, password in users.items()]
        self._open_paths = frozenset(open_paths)

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        """Returns the user of a request. Raises AuthenticationError without valid credentials."""
        if conn.scope["path"] in self._open_paths:
            return None
        given = conn.headers.getlist("authorization")
        scheme, _, shown = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        try:
            credentials = base64.b64decode(shown.strip(), validate=True)
        except ValueError:
            credentials = b""
        # Compares all, so that the time does not reveal which users exist.
        if scheme.lower() != "basic" or not sum(hmac.compare_digest(credentials, each) for each in self._known):
            raise AuthenticationError(REFUSAL)
        return AuthCredentials(["load"]), SimpleUser(credentials.partition(b":")[0].decode())


def read_users(path: Path) -> dict[str, str]:
    """Reads `user:password` lines of a private file. Raises OptionsError with a line's number, without its content."""
    try:
        text = read_text(path, lambda line: OptionsError(f"users: {line}"), private=True)
    except FileNotFoundError:
        raise OptionsError(
            f"users: {path}: there is no such file; write a line USER:PASSWORD for each user to it, and chmod 600"
        ) from None
    users: dict[str, str] = {}
    for number, line in enumerate((each.removesuffix("\r") for each in text.split("\n")), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"users: {path}, line {number}"
        user, _, password = line.partition(":")
        if not user or not password:
            raise OptionsError(f"{where}: is not USER:PASSWORD; correct it")
        if user != user.strip() or password != password.strip() or not line.isprintable():
            raise OptionsError(
                f"{where}: has a blank before or after user or password, or an unprintable character; leave it out"
            )
        if user in users:
            raise OptionsError(f"{where}: its user is that of a line above; leave one of them")
        users[user] = password
    if not users:
        raise OptionsError(f"users: {path}: names no user; write a line USER:PASSWORD for each")
    return users
