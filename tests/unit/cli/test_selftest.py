"""The commands of the selftest, from the trials of a run to what is printed and kept; no run is taken."""

from pathlib import Path

import pytest

from sinkbench.cli import selftest as selftest_command
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.results import PlanRef, RunSummary, TrialRecord
from sinkbench.runs.store import RunFolder, read_summary
from sinkbench.settings import CHECKOUT
from sinkbench.summary.cells import summarize
from tests.support.commands import Command
from tests.support.trials import run_summary, watched_and_not


def takes(monkeypatch: pytest.MonkeyPatch, trials: list[TrialRecord]) -> None:
    """Lets these be the trials of a run."""

    def run_plan(stack: object, plan: Plan, results: Path, *rest: object) -> tuple[RunFolder, RunSummary]:
        run = RunFolder.create(results, plan, CHECKOUT / "connectors")
        for trial in trials:
            run.append_trial(trial)
        ref = PlanRef(name=plan.name, sha256=plan.sha256, seed=1, trials=plan.trials)
        summary = run_summary(*summarize(expand(plan, 3), trials), run=run.run, plan=ref)
        run.write_summary(summary)
        return run, summary

    monkeypatch.setattr(selftest_command, "run_plan", run_plan)


def test_overhead_prints_the_cost_of_monitoring_and_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sinkbench: Command
) -> None:
    takes(monkeypatch, watched_and_not(12, 0.1))
    said = sinkbench.done("selftest", "overhead", "--results", tmp_path)
    assert "probes on" in said
    kept = read_summary(tmp_path / "latest").overhead
    assert kept.lost_percent == pytest.approx(10, abs=2)
    assert f"with probes {kept.lost_percent:.1f} % fewer records/s than without" in said
    assert "Monitoring costs something here" in said


def test_too_few_blocks_are_no_outcome_and_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sinkbench: Command
) -> None:
    takes(monkeypatch, watched_and_not(3, 0.1))
    code, said, _ = sinkbench("selftest", "overhead", "--minutes", 1, "--results", tmp_path)
    assert (code, "Fewer than 5 blocks" in said) == (1, True)
    assert read_summary(tmp_path / "latest").overhead is None
