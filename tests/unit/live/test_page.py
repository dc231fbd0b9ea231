"""The live page as a browser asks for it: a real server on a free port of this machine."""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from sinkbench.cli.main import app
from sinkbench.errors import SettingsError
from sinkbench.live.page import live_page
from sinkbench.live.state import LiveRun
from sinkbench.settings import CHECKOUT
from tests.support.eventclient import Client
from tests.support.liverun import CELLS, RUN, began, drained, record


@pytest.fixture
def live() -> LiveRun:
    return LiveRun()


@pytest.fixture
def page(live: LiveRun) -> Iterator[str]:
    with live_page(live, 0) as page:
        yield page


def test_opened_in_the_middle_it_gets_everything_and_then_what_changes(live: LiveRun, page: str) -> None:
    began(live)
    drained(live, 20)
    live.ended(record())
    with Client(page) as client:
        assert client.response.headers["content-type"].startswith("text/event-stream")
        whole = client.state()
        assert client.retry == 1000
        assert (set(whole), whole["run"]["name"]) == ({"run", "step", "cells", "readings", "lines"}, RUN)
        assert len(whole["cells"]) == len(CELLS)
        assert len(whole["readings"]["rate"]) == 40
        live.say("another line")
        assert set(found := client.state()) == {"lines"}
        assert found["lines"][-1]["text"] == "another line"
        live.progress(5, 10)
        assert client.state_with("step")["done"] == 5


@pytest.mark.parametrize("ending", ["complete", "failed"])
def test_a_browser_hears_the_end_and_then_the_server_is_gone(live: LiveRun, ending: Any) -> None:
    with live_page(live, 0) as page:
        began(live)
        client = Client(page)
        client.state()
        live.ended(record())
        live.end(ending)
    events = list(iter(client.next, None))
    client.__exit__()
    kind, data = events[-1]
    assert (kind, data) == ("end", {"ending": ending})
    parts = {name: part for kind, data in events if kind == "state" for name, part in data["parts"].items()}
    assert (parts["run"]["ending"], parts["cells"][0]["taken"]) == (ending, 1)
    assert not any(thread.name == "http" for thread in threading.enumerate())
    with pytest.raises(httpx.ConnectError):
        httpx.get(page)


@pytest.mark.parametrize("name", ["", "page.css", "page.js"])
def test_its_files_load_nothing_from_elsewhere(page: str, name: str) -> None:
    answer = httpx.get(page + name)
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "server" not in answer.headers
    # The name of a format, which is not fetched.
    assert "//" not in answer.text.replace("http://www.w3.org/2000/svg", "").replace("// ", "")
    assert "--paper" in httpx.get(page + "page.css").text


def test_a_foreign_host_is_refused_and_its_own_names_are_not(page: str) -> None:
    for host in ("evil.example:18070", "127.0.0.1.evil.example", ""):
        for path in ("", "events", "page.js"):
            assert httpx.get(page + path, headers={"Host": host}).status_code == 400
    for host in ("localhost:9", "127.0.0.1", "LOCALHOST"):
        assert httpx.get(page, headers={"Host": host}).status_code == 200


@pytest.mark.usefixtures("no_settings")
@pytest.mark.parametrize("what", ["live page", "metrics"])
def test_a_taken_port_is_found_before_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setenv("SINKBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SINKBENCH_PORT_OFFSET", "0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("SINKBENCH_LIVE_PORT", str(port))
        plan = CHECKOUT / "plans" / "quick.yaml"
        asked = ["--live"] if what == "live page" else ["--metrics", str(port)]
        done = CliRunner().invoke(app, ["race", str(plan), "--results", str(tmp_path / "results"), *asked])
    assert isinstance(done.exception, SettingsError)
    assert str(done.exception) == (
        f"{what}: port {port} cannot be listened on (address already in use); stop what listens there, or give"
        f" another with {'--live-port or SINKBENCH_LIVE_PORT' if what == 'live page' else '--metrics'}"
    )
    assert done.output == ""
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["race.lock"]
    assert list((tmp_path / "results").iterdir()) == []


INTERRUPTED = """
import signal, sys, time
from rich.console import Console
from sinkbench.cli.main import ENDING_SIGNALS, _interrupt
from sinkbench.live.events import Ports
from sinkbench.live.state import LiveRun
from sinkbench.race.session import _followed
for each in ENDING_SIGNALS:
    signal.signal(each, _interrupt)
def say(line):
    print(line, flush=True)
try:
    with _followed(LiveRun(), Ports(0), say):
        while True:
            time.sleep(0.1)
except SystemExit:
    print("cleaned up", flush=True)
    sys.exit(130)
"""


@pytest.mark.long
def test_ctrl_c_is_the_runs_own_and_the_browser_hears_of_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        address = run.stdout.readline().removeprefix("live: ").strip()
        with Client(address) as client:
            client.state()
            run.send_signal(signal.SIGINT)
            events = list(iter(client.next, None))
        output, errors = run.communicate(timeout=30)
    assert events[-1] == ("end", {"ending": "interrupted"})
    assert (run.returncode, output, errors) == (130, "cleaned up\n", "")
