"""`sinkbench doctor` without a stack: what the files and the machine tell, and what it says it has not looked at."""

import json
from pathlib import Path

import pytest

from sinkbench.cli.main import main
from sinkbench.doctor.rules import RULES

PLAN = """
load: {keys: 2}
pipelines:
  - {pipeline: postgres/jdbc, label: mine, overrides: {errors.tolerance: all}}
"""


@pytest.fixture(autouse=True)
def _nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINKBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SINKBENCH_STACK", "local")


def test_a_plan_is_judged_by_its_files_while_the_stack_is_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    assert main(["doctor", str(tmp_path / "mine.yaml"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    codes = {each["code"] for each in found["findings"]}
    assert {"few-keys", "no-dead-letter-queue"} <= codes
    assert found["invalid"] is True
    # What needs a service is not called well.
    assert {"failed-tasks", "too-many-connections", "full-disk", "race-refused"} <= set(found["not_checked"])
    assert "the stack is down; `sinkbench up` starts it" in found["not_checked"].values()
    assert {*found["checked"], *found["not_checked"]} == {rule.code for rule in RULES}
    assert not (tmp_path / "home").exists()


def test_a_plan_with_too_many_tasks_is_a_finding_and_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text("pipelines: [postgres/jdbc]\nmultiples: [100]\n")
    assert main(["doctor", str(tmp_path / "mine.yaml")]) == 1
    said = capsys.readouterr().out
    assert "invalidates a race: plan mine:" in said
    assert "mine.yaml:2: multiple 100 on 3 workers makes 300 tasks of postgres/jdbc" in said
    assert "docs/doctor.md#race-refused" in said
