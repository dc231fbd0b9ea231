"""Debian's Prometheus reads a run that goes on, and one that is over; the dashboard's queries find what they ask."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sinkbench.live.page import metrics_endpoint
from sinkbench.runs.reader import load_run, started_at
from sinkbench.settings import CHECKOUT
from sinkbench.tables.export import export
from tests.support.liverun import judged
from tests.support.ports import free_ports
from tests.support.samplerun import keep_run
from tests.support.waiting import until

Ask = Callable[..., list[dict[str, Any]]]
CONFIG = "scrape_configs: [{job_name: sinkbench, scrape_interval: 1s, static_configs: [{targets: ['%s']}]}]"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with Debian's `prometheus` and `promtool`, which no service starts."""
    if not shutil.which("apt-get") and not os.environ.get("TESTS_NEED_DOCKER"):
        pytest.skip("there is no apt-get to fetch Debian's Prometheus with")
    folder = tmp_path_factory.mktemp("debian")
    subprocess.run(["apt-get", "download", "--quiet", "prometheus"], cwd=folder, check=True)
    (package,) = folder.glob("*.deb")
    subprocess.run(["dpkg", "--extract", package, folder], check=True)
    return folder / "usr/bin"


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The summary of a run that has ended."""
    return load_run(keep_run(tmp_path_factory.mktemp("run") / "results", blocks=2, seconds=5)).summary


@pytest.fixture(scope="module")
def ask(programs: Path, over: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    folder, port = tmp_path_factory.mktemp("prometheus"), free_ports(1)[0]
    (folder / "over.txt").write_text(export(over, "openmetrics"), encoding="utf-8")
    made = [programs / "promtool", "tsdb", "create-blocks-from", "openmetrics", folder / "over.txt", folder / "data"]
    subprocess.run(made, check=True)
    with metrics_endpoint(judged(), "0") as endpoint:
        text = httpx.get(f"{endpoint}metrics").text
        subprocess.run([programs / "promtool", "check", "metrics"], input=text, text=True, check=True)
        (folder / "config.yaml").write_text(CONFIG % endpoint.removeprefix("http://").rstrip("/"))
        options = {"config.file": "config.yaml", "storage.tsdb.path": "data", "storage.tsdb.retention.time": "50y"}
        options["web.listen-address"] = f"127.0.0.1:{port}"
        server = subprocess.Popen(
            [programs / "prometheus", *(f"--{name}={value}" for name, value in options.items())], cwd=folder
        )

        def found(query: str, **more: Any) -> list[dict[str, Any]]:
            answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/query", params={"query": query, **more})
            return answer.raise_for_status().json()["data"]["result"]  # type: ignore[no-any-return]

        try:
            until(lambda: found('up{job="sinkbench"} == 1'), passing=(httpx.HTTPError,))
            yield found
        finally:
            server.terminate()
            server.wait(30)


def test_each_query_of_the_dashboard_finds_something(ask: Ask) -> None:
    board = json.loads((CHECKOUT / "docs" / "grafana-sinkbench.json").read_text(encoding="utf-8"))
    asking = [*(target for panel in board["panels"] for target in panel["targets"]), *board["annotations"]["list"]]
    queries = [each["expr"].replace("$pipeline", ".*") for each in asking]
    queries += [re.sub(r"label_values\((\w+), .*", r"\1", each["query"]) for each in board["templating"]["list"][1:]]
    assert len(queries) > 5
    assert {query: bool(ask(query)) for query in queries} == dict.fromkeys(queries, True)


def test_a_run_that_is_over_is_there_at_its_time(ask: Ask, over: Any) -> None:
    rates = ask("sinkbench_cell_records_per_second", time=started_at(over.run))
    found = {each["metric"]["cell"]: float(each["value"][1]) for each in rates}
    assert found == {each.cell: each.records_per_second.median for each in over.cells}
