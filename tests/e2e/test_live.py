"""A run on the real stack, watched in a browser from its start to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sinkbench.stack.local import LocalStack
from tests.support.commands import started
from tests.support.eventclient import Client

PLAN = """
pipelines: [postgres/jdbc-pgbouncer]
trials: 1
drain: {compiling_percent: 100, window_seconds: 4, pilot_seconds: 1, warm_up_seconds: 2}
"""


@pytest.mark.long
def test_a_race_shows_its_cells_its_charts_and_its_end(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    with started(tmp_path, "race", "mine.yaml", "--live-port", "0") as race:
        assert race.stdout is not None
        address = race.stdout.readline().removeprefix("live: ").strip()
        states: set[str] = set()
        cores: set[str] = set()
        most = {"rate": 0.0, "lag": 0.0, "clients": 0.0, "servers": 0.0}
        last: dict[str, Any] = {}
        kind = ""
        with Client(address) as client:
            while (found := client.next()) is not None:
                kind, data = found
                if kind != "state":
                    continue
                last |= data["parts"]
                states |= {cell["state"] for cell in last["cells"]}
                readings = last["readings"]
                cores |= {name for name, values in readings["cpu"].items() if any(values)}
                for name in most:
                    most[name] = max([most[name], *(value for value in readings[name] if value is not None)])
        output, _ = race.communicate(timeout=120)
    assert race.returncode == 0, output
    assert (kind, last["run"]["ending"]) == ("end", "complete")
    assert states == {"waiting", "pilot", "running", "done"}
    assert [(cell["state"], cell["taken"], cell["of"]) for cell in last["cells"]] == [("done", 1, 1)]
    assert all(value > 0 for value in most.values()), most
    assert {"connect", "postgres", "pgbouncer", "kafka", "controller"} <= cores
    verdicts = [line["text"] for line in last["lines"] if line["verdict"]]
    assert len(verdicts) == 1
    assert all(verdict in output for verdict in verdicts)
