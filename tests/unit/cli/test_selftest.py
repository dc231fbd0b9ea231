"""The commands of the selftest, from the trials of a run to what is printed and kept; no run is taken."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sinkbench.cli import selftest as selftest_command
from sinkbench.cli.selftest import selftest
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.results import PlanRef, RunSummary, TrialRecord
from sinkbench.runs.store import RunFolder, read_summary
from sinkbench.settings import CHECKOUT
from sinkbench.summary.cells import summarize
from tests.support.trials import run_summary, watched_and_not

Taken = Callable[[Plan], list[TrialRecord]]


def call(monkeypatch: pytest.MonkeyPatch, folder: Path, taken: Taken, *arguments: str) -> Result:
    """The command, with these trials for those of its run."""

    def run_plan(stack: object, plan: Plan, results: Path, *rest: object) -> tuple[RunFolder, RunSummary]:
        run = RunFolder.create(results, plan, CHECKOUT / "connectors")
        trials = taken(plan)
        for trial in trials:
            run.append_trial(trial)
        ref = PlanRef(name=plan.name, sha256=plan.sha256, seed=1, trials=plan.trials)
        cells = summarize(expand(plan, 3), trials)
        summary = run_summary(*cells, run=run.run, plan=ref)
        run.write_summary(summary)
        return run, summary

    monkeypatch.setattr(selftest_command, "run_plan", run_plan)
    return CliRunner().invoke(selftest, [*arguments, "--results", str(folder)])


def test_overhead_prints_the_cost_of_monitoring_and_keeps_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = call(monkeypatch, tmp_path, lambda plan: watched_and_not(12, 0.1), "overhead")
    assert done.exit_code == 0, done.output
    assert "probes on" in done.output
    kept = read_summary(tmp_path / "latest").overhead
    assert kept.lost_percent == pytest.approx(10, abs=2)
    assert f"with probes {kept.lost_percent:.1f} % fewer records/s than without" in done.output
    assert "Monitoring costs something here" in done.output


def test_too_few_blocks_are_no_outcome_and_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = call(monkeypatch, tmp_path, lambda plan: watched_and_not(3, 0.1), "overhead", "--minutes", "1")
    assert done.exit_code == 1, done.output
    assert "Fewer than 5 blocks" in done.output
    assert read_summary(tmp_path / "latest").overhead is None
