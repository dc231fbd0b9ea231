"""Who is answered by our HTTP interfaces: no page of another site, nobody who asks too often or sends too much."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from random import Random
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from loadgen import guard, httpthread
from loadgen.guard import Guard
from loadgen.serve import hosts_of
from loadgen.server import MOST_BODY_BYTES, make_app
from loadgen.service import LoadService
from sinkbench.live.page import make_app as make_page
from sinkbench.live.state import LiveRun
from tests.support.liverun import began
from tests.support.mutation import changed_bytes, changed_json
from tests.support.tlsserver import served

EXAMPLES = 1_000
OF_A_SEED = 50
LOAD = {"topic": "tides", "count": 5, "bootstrap": "127.0.0.1:9", "run": "r", "rate": 10.5, "acks": "1", "first_seq": 0}


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def asked(app: Any, headers: Mapping[str, str], url: str = "http://127.0.0.1:18090/") -> int:
    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
            return await client.get(url, headers=headers)

    return asyncio.run(ask()).status_code


def guarded(*hosts: str, any_address: bool = False, clock: Clock | None = None) -> Guard:
    app = Starlette(routes=[Route("/", echo, methods=["GET", "POST"])])
    return Guard(app, hosts, any_address=any_address, clock=clock or Clock())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "LocalHost:18090", "[::1]:7", "10.0.0.7"])
def test_an_address_or_a_name_of_the_machine_is_answered(host: str) -> None:
    assert asked(guarded("localhost", any_address=True), {"Host": host}) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:1", "", "a@localhost", "localhost:x", "[::1",
     "[", "localhost/..", "localhost#", "localhost ,evil", "127.1", "0x7f000001"],
)  # fmt: skip
def test_a_name_that_was_made_to_stand_for_the_machine_is_not(host: str) -> None:
    assert asked(guarded("localhost", any_address=True), {"Host": host}) == 400


def test_an_address_is_no_name_where_only_names_are_known() -> None:
    assert asked(guarded("localhost"), {"Host": "10.0.0.7"}) == 400


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:18090"])
def test_a_page_of_another_site_is_not_answered(origin: str) -> None:
    assert asked(guarded("127.0.0.1"), {"Origin": origin}) == 403


def test_its_own_page_is() -> None:
    assert asked(guarded("127.0.0.1"), {"Origin": "http://127.0.0.1:18090"}) == 200


def test_a_load_that_a_page_begins_as_a_form_is_not_taken() -> None:
    """A browser sends such a request without asking first."""
    service = LoadService({})
    with served(make_app(service)) as port:
        headers = {"Origin": "https://evil.example", "Content-Type": "text/plain"}
        refused = httpx.post(f"http://127.0.0.1:{port}/load", headers=headers, content=json.dumps(LOAD))
    assert refused.status_code == 403
    assert "another site" in refused.json()["error"]
    assert service.state.state == "idle"


def test_more_than_a_hundred_requests_a_second_are_refused_until_time_has_passed() -> None:
    clock = Clock()
    app = guarded("127.0.0.1", clock=clock)
    assert [asked(app, {}) for _ in range(102)] == [200] * 100 + [429] * 2
    clock.now += 0.05
    assert [asked(app, {}) for _ in range(6)] == [200] * 5 + [429]
    clock.now += 3600
    assert [asked(app, {}) for _ in range(101)] == [200] * 100 + [429]


def test_names_of_the_machine_are_known_with_and_without_brackets() -> None:
    assert hosts_of("[::1]:80")[:2] == ["localhost", "::1"]
    assert socket.gethostname() in hosts_of("0.0.0.0:80")


def answer(port: int, sent: bytes, seconds: float = 10.0) -> bytes:
    """What comes back until the server closes, or nothing more comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        with contextlib.suppress(ConnectionResetError, TimeoutError):
            while chunk := connection.recv(1 << 16):
                found += chunk
        return found


def test_a_body_that_does_not_end_gets_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    with served(make_app(LoadService({}))) as port, socket.create_connection(("127.0.0.1", port)) as slow:
        slow.settimeout(10)
        slow.sendall(b"POST /load HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{")
        assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /load HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"ffff\r\n" + b"x" * 65535,
        b"GET /load HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 100_000,
        b"GET /" + b"z" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /load HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999999\r\n\r\n{}",
        b"POST /load HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n{}",
    ],
    ids=["endless body", "long header", "long path", "huge length", "negative length"],
)
def test_what_is_too_long_is_refused_and_the_next_one_is_answered(sent: bytes) -> None:
    with served(make_app(LoadService({}))) as port:
        found = answer(port, sent)
        assert not found or found.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")), found[:200]
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200


def test_too_large_a_body_is_refused_before_it_is_read_whole() -> None:
    def body() -> Iterator[bytes]:
        for _ in range(1_000):
            yield b"x" * MOST_BODY_BYTES

    with served(make_app(LoadService({}))) as port, contextlib.suppress(httpx.WriteError):
        assert httpx.post(f"http://127.0.0.1:{port}/load", content=body()).status_code == 413


def test_a_connection_that_is_used_between_the_looks_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpthread, "IDLE_SECONDS", 2)
    app = Starlette(routes=[Route("/", echo)])
    with served(app) as port, contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        # Whoever asks once a second is mostly seen with its answer complete.
        for _ in range(6):
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"0"
            time.sleep(0.8)


def test_connections_that_say_nothing_are_closed_and_keep_nobody_out_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpthread, "IDLE_SECONDS", 3)
    with served(make_app(LoadService({}))) as port, contextlib.ExitStack() as held:
        silent = [held.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(200)]
        for half in silent[::2]:
            half.sendall(b"GET /hea")
        give_up = time.monotonic() + 30
        while httpx.get(f"http://127.0.0.1:{port}/health").status_code == 503:
            assert time.monotonic() < give_up
            time.sleep(0.1)
        for each in silent:
            each.settimeout(10)
            with contextlib.suppress(ConnectionResetError):
                assert each.recv(1) == b""


REQUESTS = (
    b"POST /load HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n"
    b'{"topic": "tides", "counts": 5}',
    b"PUT /records HTTP/1.1\r\nHost: localhost:18090\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"DELETE /load?run=r%20x HTTP/1.1\r\nHost: [::1]:1\r\nOrigin: http://[::1]:1\r\nAccept: */*\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive, upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: x\r\nCookie: a=b\r\nLast-Event-ID: 7\r\n\r\nGET /page.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /page.css HTTP/1.0\r\nHost: localhost\r\nRange: bytes=0-1\r\nIf-Match: *\r\nExpect: 100-continue\r\n\r\n",
)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("which", ["loadgen", "page"])
def test_a_thousand_bad_requests_leave_the_server_answering(
    which: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard, "MOST_PER_SECOND", 1e9)
    service, live = LoadService({}, engine=lambda *_: pytest.fail("a load was begun")), LiveRun()
    began(live)
    live.end("complete")
    app, path = (make_app(service), "/health") if which == "loadgen" else (make_page(live), "/page.js")
    ended: Counter[str] = Counter()
    with served(app) as port:

        @settings(max_examples=EXAMPLES // OF_A_SEED)
        @given(st.randoms(use_true_random=True))
        def fuzz(random: Random) -> None:
            for _ in range(OF_A_SEED):
                bad = changed_bytes(random, random.choice(REQUESTS))
                found = answer(port, bad)
                # 500 would be a traceback; a load that is refused is 4xx.
                assert not found or found.startswith(b"HTTP/1.1 "), (bad, found[:200])
                status = found.partition(b"\r\n")[0]
                assert b" 500 " not in status, (bad, found[:200])
                ended[status[9:12].decode() or "closed"] += 1

        fuzz()
        print(f"{ended.total():,} bad requests to {which}: {dict(ended)}")
        assert httpx.get(f"http://127.0.0.1:{port}{path}").status_code == 200
    for thread in threading.enumerate():
        if thread.name.startswith(("http", "AnyIO")):
            thread.join(10)
            assert not thread.is_alive(), thread
    assert "Traceback" not in "".join(capfd.readouterr()) + caplog.text


@pytest.mark.timeout(120)
def test_a_thousand_bad_loads_are_taken_or_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST_PER_SECOND", 1e9)
    began_with: list[Any] = []
    ended: Counter[int] = Counter()

    def engine(load: Any, *_: Any) -> Any:
        began_with.append(load)
        raise ZeroDivisionError("it is only a test")

    with (
        served(make_app(LoadService({}, engine))) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):

        @settings(max_examples=EXAMPLES // OF_A_SEED)
        @given(st.randoms(use_true_random=True))
        def fuzz(random: Random) -> None:
            for _ in range(OF_A_SEED):
                bad = changed_json(random, LOAD, tuple(LOAD))
                found = client.post("/load", content=bad)
                assert found.status_code in (201, 400, 409, 413), (bad, found.text)
                ended[found.status_code] += 1
                if found.status_code != 201:
                    assert "\n" not in found.json()["error"]
                while client.get("/load").json()["state"] == "running":
                    time.sleep(0.001)

        fuzz()
    print(f"{ended.total():,} bad loads: {dict(ended)}")
    assert all(load.topic for load in began_with)
