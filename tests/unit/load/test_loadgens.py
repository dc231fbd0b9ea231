"""A load is split without gaps, added up again, and ends with the name of the load generator that fails or refuses."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import sinkbench.load.loadgens as load_module
import sinkbench.load.part as loadpart
from loadgen.server import make_app
from loadgen.service import LoadService
from loadgen.summary import Summary
from sinkbench.errors import Interrupted, TrialFailed
from sinkbench.load.loadgens import Loadgens, split
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.access import Access
from sinkbench.stack import Endpoints
from tests.support.endpoints import endpoints as made
from tests.support.summaries import summary
from tests.support.tlsserver import issue, served

RECORDS = 30_000
IDLE = {"state": "idle", "load": None, "progress": None, "summary": None, "error": None}
Body = dict[str, Any]
Answer = tuple[int, Any]
Look = Callable[[int, Body], Answer | None]


def state(name: str, body: Body, acknowledged: int = 0, **more: Any) -> Body:
    load = {key: body[key] for key in ("run", "topic", "first_seq", "count")}
    progress = {"sent": acknowledged, "acknowledged": acknowledged, "failed": 0, "records_per_second": 1.0}
    return {"state": name, "load": load, "progress": progress, "summary": None, "error": None, **more}


def done(body: Body, failed: int = 0) -> Body:
    return state("done", body, summary=summary(body, failed).model_dump(mode="json"))


class Generator:
    """Answers as a load generator does; what a GET is answered with is up to `look`."""

    def __init__(self, look: Look, post: Answer | None = None, ahead_us: float = 0) -> None:
        """`look` takes the number of the GET and the load; None breaks the answer off. Its clock is `ahead_us` fast."""
        self.look, self.post, self.ahead_us = look, post, ahead_us
        self.bodies: list[Body] = []
        self.gets = 0
        self.cancelled: list[str] = []
        self.url = ""

    async def answer(self, request: Request) -> Response:
        found: Answer | None = (200, {"us": time.time_ns() / 1000 + self.ahead_us})
        if request.method == "POST":
            self.bodies.append(await request.json())
            found = self.post or (201, state("running", self.bodies[-1]))
        elif request.method == "DELETE":
            self.cancelled.append(f"/load?{request.query_params}")
            found = 200, state("cancelled", self.bodies[-1])
        elif request.url.path == "/load":
            self.gets += 1
            found = await run_in_threadpool(self.look, self.gets, self.bodies[-1])
        if found is None:
            return Response(headers={"Content-Length": "1"})
        return Response(*found[::-1]) if isinstance(found[1], str) else JSONResponse(found[1], found[0])


Start = Callable[..., Generator]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts generators, and asks them more often than those of a real load."""
    monkeypatch.setattr(load_module, "POLL_SECONDS", 0.01)
    with ExitStack() as opened:

        def start(*arguments: Any) -> Generator:
            made = Generator(*arguments)
            app = Starlette(routes=[Route("/{path:path}", made.answer, methods=["GET", "POST", "DELETE"])])
            made.url = f"http://127.0.0.1:{opened.enter_context(served(app))}/"
            return made

        yield start


def endpoints(*generators: Generator, **more: Any) -> Endpoints:
    return made(loadgens={f"loadgen-{n}": each.url for n, each in enumerate(generators, start=1)}, **more)


def run(where: Endpoints, records: int = RECORDS, progress: Any = lambda _: None, **more: Any) -> list[Summary]:
    with Loadgens(where) as loadgens:
        return loadgens.load("tides_t1", "t1", records, PlanLoad(partitions=3, **more), progress)


def running(get: int, body: Body) -> Answer:
    return 200, state("running", body, acknowledged=min(get, 9) * 1000)


def three_looks(get: int, body: Body) -> Answer:
    return running(get, body) if get < 3 else (200, done(body))


@given(st.integers(0, 10**12), st.integers(1, 50))
def test_the_parts_of_a_load_have_no_gaps_no_overlap_and_about_the_same_length(records: int, generators: int) -> None:
    parts = split(records, generators)
    assert len(parts) == min(records, generators)
    ends = [first_seq + count for first_seq, count in parts]
    assert [0, *ends] == [*(first_seq for first_seq, _ in parts), records]
    counts = [count for _, count in parts] or [1]
    assert 0 < min(counts) >= max(counts) - 1


def test_generators_share_a_load_and_their_progress_is_one(start: Start) -> None:
    generators = [start(three_looks) for _ in range(3)]
    shown: list[int] = []
    parts = run(endpoints(*generators, loadgen_kafka="kafka:9092"), 10_000, shown.append)
    assert sum(each.acknowledged for each in parts) == 10_000
    assert shown == [3000, 6000, 10_000]
    bodies = [each.bodies[0] for each in generators]
    assert [(body["first_seq"], body["count"]) for body in bodies] == [(0, 3334), (3334, 3333), (6667, 3333)]
    common = {"bootstrap": "kafka:9092", "topic": "tides_t1", "run": "t1", "partitions": 3, "acks": "all"}
    assert all(body.items() >= common.items() for body in bodies)
    # Without due times no clock is asked.
    assert not any("clock_ahead_us" in body for body in bodies)
    assert not any(each.cancelled for each in generators)


def test_due_times_are_corrected_for_the_clock_of_each_generator(start: Start) -> None:
    generators = [start(three_looks, None, ahead_us) for ahead_us in (2e6, -3e5, 0)]
    with Loadgens(endpoints(*generators)) as loadgens:
        parts = loadgens.load("tides_t1", "t1", RECORDS, PlanLoad(partitions=3), lambda _: None, rate=30_000)
    clocks = [each.clock for each in parts if each.clock is not None]
    assert [each.loadgen for each in clocks] == ["loadgen-1", "loadgen-2", "loadgen-3"]
    for clock, generator in zip(clocks, generators, strict=True):
        assert abs(clock.ahead_ms - generator.ahead_us / 1000) <= clock.within_ms
        assert generator.bodies[0]["clock_ahead_us"] == 1000 * clock.ahead_ms
    assert clocks[2].ahead_ms == 0


def test_a_kept_connection_that_is_closed_just_when_it_is_used_again_is_no_death(start: Start) -> None:
    generator = start(lambda get, body: None if get == 2 else three_looks(get, body))
    assert run(endpoints(generator), 10_000)[0].acknowledged == 10_000
    assert generator.gets > 2


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (lambda get, body: running(get, body) if get < 3 else None, "loadgen-2 died at 2,000 of 10,000 records"),
        (lambda get, body: running(get, body) if get < 3 else (200, IDLE), "loadgen-2 died at 2,000 .* started anew"),
        (lambda get, body: running(get, {**body, "run": "else"}), "loadgen-2 died at 0 .* anew: it now loads run else"),
        (lambda _, body: (200, state("failed", body, error="bootstrap: no broker")), "loadgen-2 at 0 of .*no broker"),
        (lambda _, body: (200, state("cancelled", body, 5)), "loadgen-2 was stopped by another client at 5 of 10,000"),
        (lambda _, body: (200, done(body, failed=7)), "loadgen-2 ended at 9,993 of 10,000 records: Broken: 7"),
        (lambda _get, _body: (500, "Internal\nServer Error"), r"loadgen-2 at .* 500 \(Internal Server Error\)"),
        (lambda _get, _body: (200, "hello"), r"loadgen-2 at .* answers GET /load with 200 \(hello\)"),
    ],
)
def test_one_that_fails_is_named_and_the_others_are_cancelled(start: Start, look: Look, words: str) -> None:
    generators = [start(running), start(look), start(running)]
    with pytest.raises(TrialFailed, match=f"the topic could not be loaded: {words}") as failed:
        run(endpoints(*generators))
    assert "\n" not in str(failed.value)
    assert [generators[n].cancelled for n in (0, 2)] == [["/load?run=t1"], ["/load?run=t1"]]


def test_one_that_does_not_answer_is_named(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(loadpart, "END_SECONDS", 1.0)
    over = threading.Event()

    def hang(_get: int, _body: Body) -> None:
        over.wait(30)

    generators = [start(hang), start(running)]
    with pytest.raises(TrialFailed, match=r"loadgen-1 did not answer for .* s, at 0 of 15,000 records"):
        run(endpoints(*generators))
    over.set()
    assert generators[1].cancelled == ["/load?run=t1"]


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (400, "keys: too many", "loadgen-2 refuses the load: keys: too many"),
        (503, "away", "loadgen-2 at .* answers POST /load with 503"),
    ],
)
def test_one_that_does_not_take_its_part_is_named_and_left_alone(
    start: Start, status: int, error: str, words: str
) -> None:
    generators = [start(running), start(running, (status, {"error": error}))]
    with pytest.raises(TrialFailed, match=words):
        run(endpoints(*generators))
    assert (generators[0].cancelled, generators[1].cancelled) == (["/load?run=t1"], [])


@pytest.mark.parametrize("error", [Interrupted, ZeroDivisionError])
def test_whatever_ends_the_controllers_wait_cancels_all_parts(start: Start, error: type[BaseException]) -> None:
    generators = [start(running), start(running)]
    with pytest.raises(error):
        run(endpoints(*generators), progress=Mock(side_effect=error))
    assert all(each.cancelled == ["/load?run=t1"] for each in generators)


def test_a_child_that_cannot_reach_kafka_says_so_in_its_own_words() -> None:
    said = r"loadgen at 0 of 30,000 records: client-config: .*sasl\.nonsense"
    with pytest.raises(TrialFailed, match=said) as failed:
        run(endpoints(kafka_settings={"sasl.nonsense": "hunter2"}))
    assert "hunter2" not in str(failed.value)


@pytest.mark.parametrize(("said", "asked"), [(None, 3), (2, 2)])
def test_a_topic_has_as_many_replicas_as_the_plan_says_else_as_the_topology_does(
    start: Start, said: int | None, asked: int
) -> None:
    generator = start(three_looks)
    run(endpoints(generator, replication=3), replication=said)
    assert generator.bodies[0]["replication"] == asked


USER, SECRET = "bench", "hunter2-hunter2"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A load generator with a certificate and a user."""
    with served(make_app(LoadService({}), users={USER: SECRET}), issue(tmp_path)) as port:
        yield port


def refusal(url: str, access: Access) -> str:
    with pytest.raises(TrialFailed) as refused:
        run(made(loadgens={"loadgen-1": url}, loadgen_access=access), 300)
    said = str(refused.value)
    assert [each for each in ("\n", SECRET) if each in said] == []
    return said


@pytest.mark.parametrize(("user", "password"), [(USER, "wrong-wrong"), ("other", SECRET), (None, None)])
def test_a_wrong_password_is_reported(port: int, tmp_path: Path, user: str | None, password: str | None) -> None:
    said = refusal(f"https://127.0.0.1:{port}", Access(user=user, password=password, ca=tmp_path / "server-ca.pem"))
    assert f"loadgen-1 at https://127.0.0.1:{port} refuses user and password (Authorization: no known user" in said
    assert said.endswith("; correct these")


@pytest.mark.parametrize(
    ("scheme", "ca", "words"),
    [
        ("https", "foreign-ca.pem", r"loadgen-1 at https://127.* cannot be reached \(ConnectError: \[SSL: CERT"),
        ("http", None, "loadgen-1 at http://127.* cannot be reached"),
        ("https", "gone.pem", "the load generators cannot be asked: .*/gone.pem"),
    ],
)
def test_no_password_is_shown_without_tls_that_is_trusted(
    port: int, tmp_path: Path, scheme: str, ca: str | None, words: str
) -> None:
    issue(tmp_path, "foreign")
    access = Access(user=USER, password=SECRET, ca=tmp_path / ca if ca else None)
    assert re.search(words, refusal(f"{scheme}://127.0.0.1:{port}", access))
