"""Who may ask an HTTP interface of ours: users with passwords, by HTTP's basic authentication."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from loadgen.errors import OptionsError
from loadgen.reading import read_text

__all__ = ["BasicAuth", "parse_users", "read_users"]

CHALLENGE = 'Basic realm="loadgen", charset="UTF-8"'
REFUSAL = "Authorization: no user and password that are known here; give those of a user in the file of --users"


class BasicAuth:
    """ASGI middleware that answers 401 itself where a request brings no user that is known with its password."""

    def __init__(self, app: ASGIApp, users: Mapping[str, str], open_paths: Collection[str] = ()) -> None:
        """
        Args:
            users: the password of each user.
            open_paths: paths that everybody may ask for.
        """
        self._app = app
        self._known = [_digest(f"{user}:{password}".encode()) for user, password in users.items()]
        self._open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["path"] in self._open_paths
            or self._is_known(Headers(scope=scope).getlist("authorization"))
        ):
            await self._app(scope, receive, send)
            return
        # A body is not read.
        headers = {"www-authenticate": CHALLENGE, "connection": "close"}
        await JSONResponse({"error": REFUSAL}, 401, headers)(scope, receive, send)

    def _is_known(self, given: Sequence[str]) -> bool:
        scheme, _, shown = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() != "basic":
            return False
        try:
            digest = _digest(base64.b64decode(shown.strip(), validate=True))
        except ValueError:
            return False
        # All are compared, by digests of one length: the time that it takes tells nothing of users or passwords.
        return sum(hmac.compare_digest(digest, each) for each in self._known) > 0


def _digest(credentials: bytes) -> bytes:
    return hashlib.sha256(credentials).digest()


def read_users(path: Path) -> dict[str, str]:
    """The password of each user in a file that is its owner's alone. Raises OptionsError if that fails."""
    try:
        text = read_text(path, lambda line: OptionsError(f"users: {line}"), private=True)
    except FileNotFoundError:
        raise OptionsError(
            f"users: {path}: there is no such file; write a line USER:PASSWORD for each user to it, and chmod 600"
        ) from None
    return parse_users(text, f"users: {path}")


def parse_users(text: str, name: str = "users") -> dict[str, str]:
    """The password of each user, from lines `user:password`; empty lines and those that begin with # are skipped.

    Raises OptionsError, with `name` and the line's number, but nothing of what is there: it may be a secret.
    """
    users: dict[str, str] = {}
    for number, line in enumerate((each.removesuffix("\r") for each in text.split("\n")), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"{name}, line {number}"
        user, _, password = line.partition(":")
        if not user or not password:
            raise OptionsError(f"{where}: is not USER:PASSWORD; mend it")
        if user != user.strip() or password != password.strip():
            raise OptionsError(f"{where}: a blank stands before or after user or password; leave it out")
        if not line.isprintable():
            # HTTP allows no control characters in them.
            raise OptionsError(f"{where}: holds a character that cannot be printed; leave it out")
        if user in users:
            raise OptionsError(f"{where}: its user is that of a line above; leave one of them")
        users[user] = password
    if not users:
        raise OptionsError(f"{name}: names no user; write a line USER:PASSWORD for each")
    return users
