"""What becomes of pipelines while a service is really killed, frozen or refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sinkbench.runs.store import read_summary
from sinkbench.stack.local import LocalStack
from sinkbench.stack.readiness import checks
from tests.e2e.races import left_behind
from tests.support.commands import Run

pytestmark = pytest.mark.quiet

PLAN = """
mode: faults
pipelines: [postgres/jdbc]
trials: 1
sustain: {records_per_second: 1000, seconds: 10}
drain: {pilot_seconds: 1, warm_up_seconds: 2, compiling_percent: 100}
faults:
  - {what: freeze, whom: sink, at_seconds: 3, seconds: 4}
  - {what: refuse, at_seconds: 3, seconds: 1, patience_seconds: 2}
  - {what: restart, at_seconds: 3, seconds: 1}
"""


def test_a_sink_that_hangs_one_that_refuses_and_a_restart_lose_nothing_and_leave_nothing(
    sinkbench: Run, stack: LocalStack, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    done = sinkbench("race", "mine.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    frozen, refused, restarted = read_summary(tmp_path / "results" / "latest").cells
    for cell in (frozen, refused, restarted):
        assert cell.passed, cell.verdict
        assert cell.audit is not None
        assert cell.audit.lost == 0
        assert cell.recovery is not None
        assert cell.recovery.recovered
        assert cell.recovery.connections_left == 0
        assert cell.records_per_second is None
    # Nothing is stored meanwhile, and Connect knows nothing of it.
    assert frozen.recovery is not None
    assert frozen.recovery.whom == "postgres"
    assert frozen.recovery.standstill_seconds is not None
    assert frozen.recovery.standstill_seconds > 3
    assert frozen.recovery.stuck_seconds > 2
    assert frozen.recovery.acts == []
    # The connector gives up, and Connect starts no FAILED task again.
    assert refused.recovery is not None
    assert refused.recovery.failed_tasks > 0
    assert [act.command.partition("?")[2] for act in refused.recovery.acts] == ["includeTasks=true&onlyFailed=true"]
    assert re.search(r"^refuse sink +(each once|dupl\. [\d,]+)$", done.stdout, re.MULTILINE), done.stdout
    assert all(state.state == "running" for state in stack.states())
    assert left_behind(stack) == []
    page = subprocess.run(
        [sys.executable, "-m", "sinkbench", "report", "results/latest"], cwd=tmp_path, capture_output=True, check=False
    )
    assert page.returncode == 0, page.stderr
    html = (tmp_path / "results" / "latest" / "report.html").read_text()
    assert 'href="#course-0"' in html
    assert 'id="course-0"' in html


def test_faults_of_services_are_refused_on_clusters_of_others(sinkbench: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    clusters = {"kafka": {"bootstrap": "127.0.0.1:1"}, "connect": {"urls": ["http://127.0.0.1:1"], "workers": 3}}
    (tmp_path / "clusters.yaml").write_text(json.dumps({**clusters, "postgres": {"dsn": "host=127.0.0.1 port=1"}}))
    done = sinkbench("race", "mine.yaml", "--stack", "clusters.yaml")
    assert done.returncode == 2
    assert "mine.yaml:8: 'freeze sink' cannot be done on stack external" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_a_killed_controller_has_left_frozen_goes_on_with_the_next_up(stack: LocalStack) -> None:
    check = checks(stack.endpoints)["postgres"]
    stack.freeze("postgres")
    assert check() is not None
    stack.up(lambda line: None)
    assert check() is None


@pytest.mark.long
def test_a_worker_that_is_killed_takes_its_tasks_back(sinkbench: Run, stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        PLAN.partition("faults:\n")[0] + "faults:\n  - {what: kill, whom: worker, at_seconds: 3, seconds: 2}\n"
    )
    done = sinkbench("race", "mine.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = read_summary(tmp_path / "results" / "latest").cells
    assert cell.recovery is not None
    assert cell.recovery.whom.startswith("connect-")
    assert cell.recovery.rate_seconds != 0
    assert all(state.state == "running" for state in stack.states())
    assert left_behind(stack) == []
