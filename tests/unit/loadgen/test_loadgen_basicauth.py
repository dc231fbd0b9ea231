"""Who brings no user that is known, with its password, is answered nothing but /health; no message shows a secret."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loadgen.cli as cli
from loadgen import OptionsError
from loadgen.basicauth import BasicAuth, parse_users, read_users
from loadgen.server import make_app
from loadgen.service import LoadService

SECRET = "hunter2-hunter2"  # noqa: S105  nobody's
USERS = {"bench": SECRET, "zoë": "pass:with:colons ü"}


def shown(credentials: str, scheme: str = "Basic") -> tuple[str, str]:
    return ("Authorization", f"{scheme} {base64.b64encode(credentials.encode()).decode()}")


def asked(path: str, *headers: tuple[str, str], users: dict[str, str] | None = USERS) -> httpx.Response:
    app = make_app(LoadService({}), users=users)

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://127.0.0.1") as client:
            return await client.get(path, headers=list(headers))

    return asyncio.run(ask())


@pytest.mark.parametrize("path", ["/load", "/records"])
@pytest.mark.parametrize(
    "header", [shown(f"{user}:{word}") for user, word in USERS.items()] + [shown(f"bench:{SECRET}", "BASIC")]
)
def test_a_user_with_the_password_is_answered(path: str, header: tuple[str, str]) -> None:
    assert asked(path, header).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [shown("bench:wrong-wrong")],
        [shown(f"bench:{SECRET}x")],
        [shown(f"bench:{SECRET[:-1]}")],
        [shown(f"other:{SECRET}")],
        [shown(f"zoë:{SECRET}")],
        [shown("bench")],
        [shown("bench:")],
        [shown(f":{SECRET}")],
        [shown("")],
        [shown(f"bench:{SECRET}", "Bearer")],
        [("Authorization", f"Basic bench:{SECRET}")],
        [("Authorization", "Basic")],
        [("Authorization", "Basic YmVuY2g6aHVudGVyMi1odW50ZXIy!")],
        [shown(f"bench:{SECRET}"), shown(f"bench:{SECRET}")],
    ],
)
def test_whoever_brings_anything_else_is_not(headers: list[tuple[str, str]]) -> None:
    for path in ("/load", "/records", "/", "/healthy", "/health/", "//health", "/load?x=/health"):
        refused = asked(path, *headers)
        assert refused.status_code == 401, path
        assert refused.headers["www-authenticate"].startswith("Basic ")
        assert "\n" not in refused.json()["error"]
        assert SECRET not in refused.text


def test_whether_it_runs_is_told_to_everybody() -> None:
    assert asked("/health").json()["status"] == "ok"
    assert asked("/health", shown("bench:wrong")).status_code == 200


def test_without_users_everybody_is_answered() -> None:
    assert asked("/load", users=None).status_code == 200


@given(st.text(), st.sampled_from(["Basic ", "basic", "Basic  ", ""]))
def test_no_header_whatever_is_an_error_of_ours(text: str, scheme: str) -> None:
    raw = (scheme + text).encode("utf-8", "surrogatepass").decode("latin-1")
    auth = BasicAuth(make_app(LoadService({})), USERS)
    # Nobody guesses these.
    assert not auth._is_known([raw])


def test_lines_are_users_and_the_rest_is_left_out() -> None:
    text = f"# who may\n\nbench:{SECRET}\r\nzoë:pass:with:colons ü\n"
    assert parse_users(text) == USERS


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (SECRET, "is not USER:PASSWORD"),
        (f":{SECRET}", "is not USER:PASSWORD"),
        ("bench:", "is not USER:PASSWORD"),
        (f"bench: {SECRET}", "a blank stands before or after"),
        (f" bench:{SECRET}", "a blank stands before or after"),
        (f"bench:{SECRET} ", "a blank stands before or after"),
        (f"bench:{SECRET}\x07x", "a character that cannot be printed"),
        (f"first:{SECRET}", "its user is that of a line above"),
    ],
)
def test_a_line_that_is_not_taken_is_named_by_its_number_and_not_shown(line: str, words: str) -> None:
    with pytest.raises(OptionsError, match=r"users, line 3: ") as refused:
        parse_users(f"first:x\n\n{line}\n")
    assert words in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0o600, "there is no such file"),
        (b"", 0o600, "names no user"),
        (b"# nobody\n", 0o600, "names no user"),
        (b"\xff\xfe", 0o600, "is not UTF-8 text"),
        (SECRET.encode(), 0o600, "line 1: is not USER:PASSWORD"),
        (f"bench:{SECRET}".encode(), 0o644, "holds a secret and is not its owner's alone; run chmod 600"),
        (f"bench:{SECRET}".encode(), 0o640, "holds a secret and is not its owner's alone; run chmod 600"),
        (f"bench:{SECRET}".encode(), 0o602, "holds a secret and is not its owner's alone; run chmod 600"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, mode: int, words: str
) -> None:
    path = tmp_path / "users"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    assert cli.main(["serve", "--listen", "127.0.0.1:0", "--users", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"loadgen: users: {path}")
    assert words in said.err
    assert said.err.count("\n") == 1
    assert "hunter2" not in said.err


def test_users_may_come_through_a_pipe() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, f"bench:{SECRET}\n".encode())
        os.close(writing)
        assert read_users(Path(f"/dev/fd/{reading}")) == {"bench": SECRET}
    finally:
        os.close(reading)
