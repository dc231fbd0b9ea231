"""CPU time and memory by PromQL, as a scripted Prometheus answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from sinkbench.errors import StackError
from sinkbench.stack.external import ExternalStack, load_stack_file
from sinkbench.stack.prometheus import PrometheusSection
from tests.support.tlsserver import served

ANSWERS = {
    "cpu": [{"metric": {}, "value": [1, "12.5"]}],
    "memory": [{"metric": {}, "value": [1, "1e9"]}],
    "nothing": [],
    "several": [{"value": [1, "1"]}, {"value": [1, "2"]}],
    "nan": [{"value": [1, "NaN"]}],
}


def answer(request: Request) -> JSONResponse:
    if (query := request.query_params["query"]) not in ANSWERS:
        return JSONResponse({"status": "error", "errorType": "bad_data", "error": "parse error"}, 400)
    return JSONResponse({"status": "success", "data": {"resultType": "vector", "result": ANSWERS[query]}})


@pytest.fixture
def url() -> Iterator[str]:
    with served(Starlette(routes=[Route("/api/v1/query", answer)])) as port:
        yield f"http://127.0.0.1:{port}"


def test_what_has_an_answer_is_measured_and_the_rest_is_left_out(url: str) -> None:
    section = PrometheusSection(
        url=url, cpu_seconds={"kafka": "cpu", "connect": "nothing"}, memory_bytes={"postgres": "memory"}
    )
    found = section.usage()
    assert (found.cpu_seconds, found.memory_bytes) == ({"kafka": 12.5}, {"postgres": 1e9})


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("nothing", "cpu_seconds of kafka: nothing: has 0 series; add them up, or correct it"),
        ("several", "has 2 series"),
        ("nan", "is nan"),
        ("sum(", "cpu_seconds of kafka: sum(: parse error"),
    ],
)
def test_a_query_without_one_number_is_named_with_what_is_wrong(url: str, query: str, said: str) -> None:
    # The other figure of the service has an answer.
    section = PrometheusSection(url=url, cpu_seconds={"kafka": query}, memory_bytes={"kafka": "memory"})
    assert said in (section.problem() or "")
    assert PrometheusSection(url=url, cpu_seconds={"kafka": "cpu"}).problem() is None


def stack_of(folder: Path, prometheus: str) -> Path:
    path = folder / "clusters.yaml"
    kafka = "kafka: {bootstrap: '127.0.0.1:1'}\nconnect: {urls: ['http://127.0.0.1:1', 'http://127.0.0.1:2']}\n"
    path.write_text(f"{kafka}prometheus: {prometheus}\n")
    return path


def test_a_stack_file_has_figures_of_its_services_and_names_those_that_it_has_not(url: str, tmp_path: Path) -> None:
    stack = ExternalStack(stack_of(tmp_path, f"{{url: '{url}', cpu_seconds: {{connect: cpu}}}}"))
    assert stack.usage().cpu_seconds == {"kafka": None, "connect": 12.5}
    unmeasured = stack.facts().unmeasured
    assert "CPU time of Kafka" in unmeasured
    assert "CPU time of Connect" not in unmeasured


def test_a_service_that_there_is_not_is_refused_with_the_nearest(tmp_path: Path) -> None:
    path = stack_of(tmp_path, "{url: 'http://127.0.0.1:1', cpu_seconds: {postgresql: up}}")
    with pytest.raises(StackError, match=r"clusters.yaml:3: .*no service postgresql; did you mean 'postgres'"):
        load_stack_file(path)
