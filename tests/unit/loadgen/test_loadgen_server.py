"""The HTTP interface takes one load at a time, follows it, stops it, and says why it refuses, and whom."""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization

from loadgen.dataset.store import Dataset
from loadgen.errors import BrokerError
from loadgen.options import Load
from loadgen.server import hosts_of, make_app, read_users
from loadgen.service import LoadService
from loadgen.summary import Progress, Summary
from tests.support.asgi import ask
from tests.support.commands import Command
from tests.support.summaries import summary
from tests.support.tlsserver import Issued, issue
from tests.unit.loadgen.test_loadgen_dataset import built

BODY = {"bootstrap": "127.0.0.1:9", "topic": "tides", "count": 50, "run": "r1", "first_seq": 7}
NAME = {"run": "r1", "topic": "tides", "first_seq": 7, "count": 50}


class Engine:
    """Stands in for a load: shows one progress, then goes on until it may end, fails, or is stopped."""

    def __init__(self) -> None:
        self.calls: list[tuple[Load, Mapping[str, str], Dataset]] = []
        self.let_go = threading.Event()
        self.deaf = False
        self.error: BaseException | None = None

    def __call__(self, load: Load, on_progress: Any, stop: Any, client_settings: Any, dataset: Any) -> Summary:
        self.calls.append((load, client_settings, dataset))
        on_progress(Progress(sent=30, acknowledged=20, failed=0, records_per_second=20.0))
        while not self.let_go.is_set() and (self.deaf or not stop.is_set()):
            time.sleep(0.001)
        if self.error is not None:
            raise self.error
        sent = 20 if stop.is_set() else 50
        name = {"run": load.run, "topic": load.topic, "first_seq": load.first_seq, "count": sent}
        return summary(name, interrupted=stop.is_set())


class Server:
    """The application, asked in-process."""

    def __init__(self) -> None:
        self.app = make_app(LoadService({"sasl.password": "hunter2-hunter2"}), "default:1")

    def ask(self, method: str, path: str = "/load", **more: Any) -> httpx.Response:
        return ask(self.app, method, path, **more)

    def wait_for(self, state: str) -> dict[str, Any]:
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up:
            found: dict[str, Any] = self.ask("GET").json()
            if found["state"] == state and (state != "running" or found["progress"] is not None):
                return found
            time.sleep(0.005)
        raise AssertionError(f"was never {state}: {found}")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    made = Engine()
    monkeypatch.setattr("loadgen.service.run", made)
    monkeypatch.setattr("loadgen.server.CANCEL_SECONDS", 30)
    yield made
    made.let_go.set()


@pytest.fixture
def server(engine: Engine) -> Server:
    return Server()


def test_it_says_that_it_is_there_and_idle(server: Server) -> None:
    assert server.ask("GET", "/health").json() == {"status": "ok"}
    idle = {"state": "idle", "load": None, "progress": None, "summary": None, "error": None}
    assert server.ask("GET").json() == idle
    assert server.ask("DELETE").json() == idle


def test_it_tells_the_time(server: Server) -> None:
    before_us = time.time_ns() / 1000
    assert before_us <= server.ask("GET", "/clock").json()["us"] <= time.time_ns() / 1000


def test_a_load_is_followed_to_its_summary(server: Server, engine: Engine) -> None:
    begun = server.ask("POST", json=BODY)
    assert begun.status_code == 201
    assert (begun.json()["state"], begun.json()["load"]) == ("running", NAME)
    running = server.wait_for("running")
    assert (running["progress"]["acknowledged"], running["summary"]) == (20, None)
    engine.let_go.set()
    done = server.wait_for("done")
    assert (done["load"], done["summary"]["acknowledged"]) == (NAME, 50)
    load = Load(bootstrap="127.0.0.1:9", topic="tides", count=50, run="r1", first_seq=7)
    assert engine.calls == [(load, {"sasl.password": "hunter2-hunter2"}, None)]
    assert "hunter2" not in json.dumps(done)


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (json.dumps({**BODY, "acks": "2"}), 400, "acks: found '2'"),
        ("\xff\xfe", 400, "body: is not JSON"),
        ("[" * 60_000, 400, "body: is not JSON"),
        ('{"a":' * 500 + "1" + "}" * 500, 400, "body: is not JSON"),
        ('{"topic": "t", "count": NaN}', 400, "NaN is no number"),
        ('{"topic": "t", "count": 1e999}', 400, "1e999 is too large"),
        ('{"topic": "t", "count": 5, "count": 6}', 400, "'count' stands there twice"),
        (json.dumps({**BODY, "count": True}), 400, "count: found True"),
        (json.dumps({**BODY, "run": "\ud800"}), 400, "half a character"),
        ("[1]", 400, "body: found a JSON list"),
        (json.dumps({**BODY, "topic": "t" * 60_000}), 400, "topic: found 'ttt"),
        (json.dumps({**BODY, "topic": "t" * 70_000}), 413, "more than 65,536 bytes"),
    ],
)
def test_what_is_no_load_is_refused_in_one_short_line(
    server: Server, engine: Engine, content: str, status: int, words: str
) -> None:
    refused = server.ask("POST", content=content.encode("latin-1"))
    ((name, said),) = refused.json().items()
    assert (refused.status_code, name, engine.calls) == (status, "error", [])
    assert words in said
    assert "\n" not in said
    assert len(said) <= 1_000


def test_a_load_cancelled_by_its_run_has_ended_when_the_answer_comes_and_can_be_cancelled_again(server: Server) -> None:
    server.ask("POST", json=BODY)
    server.wait_for("running")
    assert server.ask("DELETE", params={"run": "r2"}).json()["state"] == "running"
    first = server.ask("DELETE", params={"run": "r1"}).json()
    assert (first["state"], first["summary"]["acknowledged"]) == ("cancelled", 20)
    assert server.ask("DELETE").json() == first
    assert server.ask("POST", json=BODY).status_code == 201


def test_a_load_that_does_not_end_at_once_is_still_running_when_the_answer_comes(
    server: Server, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.deaf = True
    monkeypatch.setattr("loadgen.server.CANCEL_SECONDS", 0.01)
    server.ask("POST", json=BODY)
    assert server.ask("DELETE").json()["state"] == "running"
    assert server.ask("POST", json=BODY).status_code == 409
    engine.let_go.set()
    server.wait_for("cancelled")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BrokerError("bootstrap: no broker\nanswers"), "bootstrap: no broker answers"),
        (ZeroDivisionError("hunter2-hunter2 by zero"), "ZeroDivisionError: *** by zero"),
    ],
)
def test_a_load_that_cannot_go_on_has_failed_and_says_why(
    server: Server, engine: Engine, capfd: pytest.CaptureFixture[str], error: Exception, words: str
) -> None:
    engine.error = error
    engine.let_go.set()
    server.ask("POST", json=BODY)
    failed = server.wait_for("failed")
    assert words in failed["error"]
    assert ("\n" in failed["error"], failed["summary"]) == (False, None)
    assert "hunter2" not in capfd.readouterr().err


def packed(folder: Path) -> tuple[bytes, str]:
    """A data set of two records as it is sent, and its digest."""
    dataset = built([b'{"id": %d}' % number for number in range(2)], [b"k"] * 2)
    dataset.write(folder / "set")
    return (folder / "set").read_bytes(), dataset.facts.sha256


def test_the_users_own_records_are_sent_before_their_load(server: Server, engine: Engine, tmp_path: Path) -> None:
    body, sha256 = packed(tmp_path)
    assert server.ask("GET", "/records").json() is None
    # No file of the load generator's machine is read either.
    for records, words in ((sha256, "send them by PUT /records"), ("/etc/hostname", "neither noaa nor those")):
        refused = server.ask("POST", "/load", json={**BODY, "records": records})
        assert (refused.status_code, words in refused.json()["error"]) == (400, True)
    assert server.ask("PUT", "/records", content=body).status_code == 201
    assert server.ask("GET", "/records").json()["records"] == 2
    assert server.ask("POST", "/load", json={**BODY, "records": sha256}).status_code == 201
    engine.let_go.set()
    server.wait_for("done")
    ((_, _, dataset),) = engine.calls
    assert dataset.facts.sha256 == sha256


@pytest.mark.parametrize(
    "change",
    [lambda body: body[:-1], lambda body: body.replace(b'"id": 1', b'"id": 7'), lambda body: b"", lambda body: b"{}"],
)
def test_records_that_are_damaged_are_refused(server: Server, tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    body, _ = packed(tmp_path)
    assert server.ask("PUT", "/records", content=change(body)).status_code == 400
    assert server.ask("GET", "/records").json() is None


USER, SECRET = "bench", "hunter2-hunter2"
USERS = {USER: SECRET, "zoë": "pass:with:colons ü"}


def asked(path: str, *headers: tuple[str, str], method: str = "GET", **more: Any) -> httpx.Response:
    """What is answered in-process; `more` are options of the interface."""
    return ask(make_app(LoadService({}), **more), method, path, headers=list(headers), content=json.dumps(BODY))


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
    path.write_bytes(content)
    path.chmod(mode)
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
    tmp_path: Path, loadgen_command: Command, damage: Callable[[Issued], object], words: str
) -> None:
    files = issue(tmp_path)
    damage(files)
    tls = ("--tls-certificate", files.certificate, "--tls-key", files.key)
    said = loadgen_command.refused("serve", "--listen", "127.0.0.1:0", *tls)
    assert words.format(certificate=files.certificate, key=files.key) in said


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:18090"])
def test_it_listens_only_on_loopback_without(listen: str, loadgen_command: Command) -> None:
    said = loadgen_command.refused("serve", "--listen", listen)
    assert said.startswith(f"loadgen: listen: {listen} can be reached from other machines")
    assert "; add --tls-certificate, --tls-key, --users, or --private-network" in said
