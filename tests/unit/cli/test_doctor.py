"""`sinkbench doctor` without a stack: what the files and the machine tell, and what it says it has not looked at."""

import json
from pathlib import Path

import pytest

from sinkbench.doctor.rules import RULES
from tests.support.commands import Command

PLAN = """
load: {keys: 2}
pipelines:
  - {pipeline: postgres/jdbc, label: mine, overrides: {errors.tolerance: all}}
"""


@pytest.fixture(autouse=True)
def _nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINKBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SINKBENCH_STACK", "local")


def test_a_plan_is_judged_by_its_files_while_the_stack_is_down(tmp_path: Path, sinkbench: Command) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    code, out, _ = sinkbench("doctor", tmp_path / "mine.yaml", "--json")
    found = json.loads(out)
    assert (code, found["invalid"]) == (1, True)
    assert {"few-keys", "no-dead-letter-queue"} <= {each["code"] for each in found["findings"]}
    # What needs a service is not called well.
    assert {"failed-tasks", "too-many-connections", "full-disk", "race-refused"} <= set(found["not_checked"])
    assert "the stack is down; `sinkbench up` starts it" in found["not_checked"].values()
    assert {*found["checked"], *found["not_checked"]} == {rule.code for rule in RULES}
    assert not (tmp_path / "home").exists()


def test_a_plan_with_too_many_tasks_is_a_finding_and_no_error(tmp_path: Path, sinkbench: Command) -> None:
    (tmp_path / "mine.yaml").write_text("pipelines: [postgres/jdbc]\nmultiples: [100]\n")
    code, said, _ = sinkbench("doctor", tmp_path / "mine.yaml")
    assert code == 1
    tasks = "mine.yaml:2: multiple 100 on 3 workers makes 300 tasks of postgres/jdbc"
    assert [
        part for part in ("invalidates a race: plan mine:", tasks, "docs/doctor.md#race-refused") if part not in said
    ] == []
