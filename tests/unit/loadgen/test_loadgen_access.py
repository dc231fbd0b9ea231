"""Who may use loadgen's HTTP interface: users with their passwords, over TLS, and no page of another site."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization

from loadgen.server import hosts_of, make_app, read_users
from loadgen.service import LoadService
from tests.support.asgi import ask
from tests.support.commands import Command
from tests.support.tlsserver import Issued, issue

USER, SECRET = "bench", "hunter2-hunter2"
USERS = {USER: SECRET, "zoë": "pass:with:colons ü"}
LOAD = {"topic": "tides", "count": 5, "bootstrap": "127.0.0.1:9"}


@pytest.fixture
def files(tmp_path: Path) -> Issued:
    return issue(tmp_path)


def asked(path: str, *headers: tuple[str, str], method: str = "GET", **more: Any) -> httpx.Response:
    """What is answered in-process; `more` are options of the interface."""
    return ask(make_app(LoadService({}), **more), method, path, headers=list(headers), content=json.dumps(LOAD))


def shown(credentials: str, scheme: str = "Basic") -> tuple[str, str]:
    return ("Authorization", f"{scheme} {base64.b64encode(credentials.encode()).decode()}")


@pytest.mark.parametrize("header", [*(shown(f"{user}:{word}") for user, word in USERS.items()),
                                    shown(f"{USER}:{SECRET}", "BASIC")])  # fmt: skip
def test_a_user_with_the_password_is_answered(header: tuple[str, str]) -> None:
    assert asked("/load", header, users=USERS).status_code == 200
    assert asked("/health", users=USERS).json()["status"] == "ok"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [shown(f"bench:{SECRET}x")],
        [shown(f"other:{SECRET}")],
        [shown(f"zoë:{SECRET}")],
        [shown("bench")],
        [shown(f"bench:{SECRET}", "Bearer")],
        [("Authorization", f"Basic bench:{SECRET}")],
        [("Authorization", "Basic")],
        [shown(f"bench:{SECRET}"), shown(f"bench:{SECRET}")],
    ],
)
def test_a_request_with_anything_else_is_refused(headers: list[tuple[str, str]]) -> None:
    for path in ("/load", "/records", "/", "/healthy", "/health/", "//health", "/load?x=/health"):
        refused = asked(path, *headers, users=USERS)
        assert refused.status_code == 401, path
        assert refused.headers["www-authenticate"].startswith("Basic ")
        assert "\n" not in refused.json()["error"]
        assert SECRET not in refused.text


@pytest.mark.parametrize(
    ("status", "hosts"),
    [
        (200, ["127.0.0.1:9", "LocalHost:18090", "[::1]:7", "gen1"]),
        (400, ["evil.example", "127.0.0.1.evil.example", "", "a@localhost", "[::1", "127.1"]),
    ],
)
def test_only_a_name_of_the_machine_is_answered(status: int, hosts: list[str]) -> None:
    for host in hosts:
        known = [*hosts_of("0.0.0.0:1"), "gen1"]
        assert asked("/health", ("Host", host), hosts=known).status_code == status, host


def test_a_page_of_another_site_begins_no_load() -> None:
    headers = (("Origin", "https://evil.example"), ("Content-Type", "text/plain"))
    refused = asked("/load", *headers, method="POST")
    assert (refused.status_code, "another site" in refused.json()["error"]) == (403, True)


def users_file(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "users"
    path.touch(mode=mode)
    path.chmod(mode)
    path.write_bytes(content)
    return path


def test_lines_are_users_and_comments_are_skipped(tmp_path: Path) -> None:
    text = f"# who may\n\nbench:{SECRET}\r\nzoë:pass:with:colons ü\n"
    assert read_users(users_file(tmp_path, text.encode())) == USERS


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"# no user\n", 0o600, "names no user"),
        (b"\xff\xfe", 0o600, "is not UTF-8 text"),
        (f"bench:{SECRET}".encode(), 0o640, "which only its owner may use"),
        (f"first:x\n\n:{SECRET}".encode(), 0o600, "line 3: is not USER:PASSWORD"),
        (f"bench: {SECRET}".encode(), 0o600, "line 1: is not USER:PASSWORD"),
        (f"bench:{SECRET}\x07x".encode(), 0o600, "line 1: is not USER:PASSWORD"),
        (f"bench:x\nbench:{SECRET}".encode(), 0o600, "line 2: its user is that of a line above"),
    ],
)
def test_a_file_of_users_that_cannot_be_used_is_one_line_and_exit_code_2(
    tmp_path: Path, loadgen_command: Command, content: bytes, mode: int, words: str
) -> None:
    path = users_file(tmp_path, content, mode)
    said = loadgen_command.refused("serve", "--listen", "127.0.0.1:0", "--users", path)
    assert said.startswith(f"loadgen: users: {path}")
    assert (words in said, "hunter2" in said) == (True, False)


def encrypt(files: Issued) -> None:
    key, passphrase = files.key.read_bytes(), serialization.BestAvailableEncryption(b"hush-hush")
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, passphrase)
    files.key.write_bytes(serialization.load_pem_private_key(key, None).private_bytes(*form))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda files: files.key.unlink(), "tls-key: {key}: there is no such file; "),
        (lambda files: files.certificate.write_text("x"), "{certificate} and {key} are no certificate and its key"),
        (lambda files: issue(files.key.parent, "o").key.replace(files.key), "{certificate} and {key} are no certifi"),
        (encrypt, "in PEM format without a passphrase"),
        (lambda files: files.key.chmod(0o640), "tls-key: {key}: has a secret, which only its owner may use"),
    ],
)
def test_files_for_tls_that_cannot_be_used_are_one_line_and_exit_code_2(
    files: Issued, loadgen_command: Command, damage: Callable[[Issued], object], words: str
) -> None:
    damage(files)
    tls = ("--tls-certificate", files.certificate, "--tls-key", files.key)
    said = loadgen_command.refused("serve", "--listen", "127.0.0.1:0", *tls)
    assert words.format(certificate=files.certificate, key=files.key) in said


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:18090"])
def test_it_listens_only_on_loopback_without(listen: str, loadgen_command: Command) -> None:
    said = loadgen_command.refused("serve", "--listen", listen)
    assert said.startswith(f"loadgen: listen: {listen} can be reached from other machines")
    assert "; add --tls-certificate, --tls-key, --users, or --private-network" in said
