"""The HTTP interface takes one load at a time, follows it, stops it, and says why it refuses."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from loadgen.dataset.store import Builder, Dataset
from loadgen.errors import BrokerError
from loadgen.options import Load
from loadgen.server import make_app
from loadgen.service import LoadService
from loadgen.summary import Progress, Summary
from tests.support.asgi import ask
from tests.support.summaries import summary

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

    def __init__(self, engine: Engine, cancel_seconds: float = 30) -> None:
        self.app = make_app(LoadService({"sasl.password": "hunter2-hunter2"}, engine), "default:1", cancel_seconds)

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
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.let_go.set()


@pytest.fixture
def server(engine: Engine) -> Server:
    return Server(engine)


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


def test_a_load_that_does_not_end_at_once_is_still_running_when_the_answer_comes(engine: Engine) -> None:
    engine.deaf = True
    server = Server(engine, cancel_seconds=0.01)
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
    builder = Builder()
    for number in range(2):
        builder.add(b'{"id": %d}' % number, b"k")
    dataset = builder.build("mine.ndjson", whole=True)
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
