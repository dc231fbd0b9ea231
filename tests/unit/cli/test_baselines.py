"""Baselines: a run under a name, compared with runs of the same machine and plan only."""

from pathlib import Path

import pytest

from sinkbench.cli import race
from sinkbench.cli.main import main
from sinkbench.runs.reader import baseline_folder, list_runs, load_run
from sinkbench.runs.store import RunFolder, copy_run
from tests.frozen.make import stored_run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results with run pair-b, and pair-a as the baseline main, which was another run before."""
    stored_run("pair-b", tmp_path / "results")
    for name in ("drain-cold", "pair-a"):
        run = stored_run(name, tmp_path / "earlier")
        (run / "samples").mkdir()
        copy_run(run, baseline_folder("main", tmp_path / "results" / "baselines"))
    return tmp_path / "results"


def test_a_baseline_is_compared_by_name_with_the_newest_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "main", "--results", str(results)]) == 0
    assert "12,154        1,597  0.131" in capsys.readouterr().out
    assert main(["compare", "main", "--results", str(results), "--fail-if-slower", "5%", "--format", "github"]) == 1
    assert "- **slower by more than 5 %: elasticsearch/camel-bulk@3x1 (86.9 %)**" in capsys.readouterr().out
    assert [row.summary is not None for row in list_runs(results)] == [True]
    assert [path.name for path in (results / "baselines").iterdir()] == ["main"]
    assert not (results / "baselines" / "main" / "samples").exists()
    assert main(["compare", "mian", "--results", str(results)]) == 2
    assert f"mian: is no run in {results} and no baseline in {results}/baselines;" in capsys.readouterr().err


@pytest.mark.parametrize("order", [["main", "latest"], ["latest", "main"]])
def test_a_baseline_of_another_machine_or_plan_is_not_compared(
    order: list[str], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, summary = (results / "baselines" / "main" / name for name in ("plan.yaml", "summary.json"))
    plan.write_text(plan.read_text().replace('"window_seconds": 2.5', '"window_seconds": 9.0'))
    for why in ("is of another plan: drain.window_seconds was 9.0,", "was measured on another machine: AMD EPYC, 64"):
        assert main(["compare", *order, "--results", str(results), "--format", "github"]) == 2
        out, err = capsys.readouterr()
        assert (err.startswith(f"sinkbench: baseline main {why}"), err.count("\n")) == (True, 1)
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
def test_a_name_that_is_none_is_refused_before_the_race(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["race", "quick", "--save", name]) == 2
    assert f"--save {name}: is no name of a baseline" in capsys.readouterr().err
