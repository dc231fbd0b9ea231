"""Baselines: a run under a name, compared with runs of the same machine and plan only."""

from pathlib import Path

import pytest

from sinkbench.cli import race
from sinkbench.cli.main import main
from sinkbench.runs.reader import baseline_folder, list_runs, load_run
from sinkbench.runs.store import RunFolder, copy_run
from tests.frozen.make import stored_run
from tests.support.commands import Command


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results with run pair-b, and pair-a as the baseline main, which was another run before."""
    stored_run("pair-b", tmp_path / "results")
    for name in ("drain-cold", "pair-a"):
        run = stored_run(name, tmp_path / "earlier")
        (run / "samples").mkdir()
        copy_run(run, baseline_folder("main", tmp_path / "results" / "baselines"))
    return tmp_path / "results"


def test_a_baseline_is_compared_by_name_with_the_newest_run(results: Path, sinkbench: Command) -> None:
    assert "12,154        1,597  0.131" in sinkbench.done("compare", "main", "--results", results)
    gate = ("--fail-if-slower", "5%", "--format", "github")
    code, out, _ = sinkbench("compare", "main", "--results", results, *gate)
    assert (code, "- **slower by more than 5 %: elasticsearch/camel-bulk@3x1 (86.9 %)**" in out) == (1, True)
    assert [row.summary is not None for row in list_runs(results)] == [True]
    assert [path.name for path in (results / "baselines").iterdir()] == ["main"]
    assert not (results / "baselines" / "main" / "samples").exists()
    said = f"mian: is no run in {results} and no baseline in {results}/baselines;"
    assert said in sinkbench.refused("compare", "mian", "--results", results)


@pytest.mark.parametrize("order", [["main", "latest"], ["latest", "main"]])
def test_a_baseline_of_another_machine_or_plan_is_not_compared(
    order: list[str], results: Path, sinkbench: Command
) -> None:
    plan, summary = (results / "baselines" / "main" / name for name in ("plan.yaml", "summary.json"))
    plan.write_text(plan.read_text().replace('"window_seconds": 2.5', '"window_seconds": 9.0'))
    for why in ("is of another plan: drain.window_seconds was 9.0,", "was measured on another machine: AMD EPYC, 64"):
        code, out, err = sinkbench("compare", *order, "--results", results, "--format", "github")
        assert (code, err.startswith(f"sinkbench: baseline main {why}"), err.count("\n")) == (2, True, 1)
        assert out.startswith("<!-- sinkbench pair -->\n**sinkbench, plan pair.** not compared\n\nbaseline main ")
        summary.write_text(summary.read_text().replace('"cpu_count": 2', '"cpu_count": 64'))


@pytest.mark.parametrize("passed", [True, False])
def test_a_race_saves_a_run_that_passed_only(passed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stored_run("pair-a", tmp_path / "results")
    summary = load_run(run).summary.model_copy(update={"complete": passed})
    monkeypatch.setattr(race, "run_plan", lambda *_, **__: (RunFolder(run), summary))
    main(["race", "quick", "--results", str(tmp_path / "results"), "--save", "main"])
    assert (tmp_path / "results" / "baselines" / "main" / "summary.json").exists() is passed


@pytest.mark.parametrize("name", ["../main", "latest", "", ".x", "a/b"])
def test_a_name_that_is_none_is_refused_before_the_race(name: str, sinkbench: Command) -> None:
    assert f"--save {name}: is no name of a baseline" in sinkbench.refused("race", "quick", "--save", name)
