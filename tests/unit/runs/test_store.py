"""The folder of a run: what is in it, and what happens when it cannot be written or read."""

import csv
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sinkbench.errors import UserError
from sinkbench.plan.plan import Plan, load_plan
from sinkbench.results import TrialRecord
from sinkbench.runs.store import RunFolder, check_writable, read_summary, read_trials
from tests.support.trials import connectors_in, run_summary
from tests.support.trials import trial as any_trial

NOW = datetime(2026, 11, 21, 3, 48, tzinfo=UTC)
PLAN = Plan.model_validate({"name": "quick", "pipelines": ["postgres/jdbc"], "seed": 7})
FULL_DISK = Path("/dev/full")


@pytest.fixture
def connectors(tmp_path: Path) -> Path:
    connectors_in(tmp_path, "postgres/unused")
    return connectors_in(tmp_path, "postgres/jdbc", text='{"name": "jdbc"}')


@pytest.fixture
def folder(tmp_path: Path, connectors: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "results", PLAN, connectors, NOW)


def trial(number: int = 1) -> TrialRecord:
    return any_trial(trial=f"t{number}")


def test_a_run_is_named_after_its_start_and_its_plan(folder: RunFolder, tmp_path: Path, connectors: Path) -> None:
    assert folder.run == "20261121T034800Z-quick"
    assert RunFolder.create(tmp_path / "results", PLAN, connectors, NOW).run == "20261121T034800Z-quick-2"
    assert RunFolder.create(tmp_path / "results", PLAN, connectors, NOW).run == "20261121T034800Z-quick-3"


def test_the_plan_and_its_connectors_are_kept_as_they_ran(folder: RunFolder, connectors: Path) -> None:
    kept = load_plan(folder.path / "plan.yaml", connectors)
    assert kept.show() == PLAN.show()
    assert kept.seed == 7
    copies = [str(file.relative_to(folder.path)) for file in folder.path.rglob("*.json")]
    assert copies == ["connectors/postgres/jdbc.json"]
    assert (folder.path / copies[0]).read_text() == '{"name": "jdbc"}'


def test_a_half_written_last_line_is_passed_over_and_then_replaced(folder: RunFolder) -> None:
    folder.append_trial(trial(1))
    with folder.trials_path.open("a") as trials:
        trials.write(trial(2).model_dump_json()[:40])
    assert read_trials(folder.trials_path) == [trial(1)]
    folder.append_trial(trial(3))
    assert read_trials(folder.trials_path) == [trial(1), trial(3)]


def test_samples_have_the_same_columns_whatever_the_rows_lack(folder: RunFolder) -> None:
    first: dict[str, float | str | None] = {"seconds": 0.25, "zeta": 1, "stored": 10}
    path = folder.write_samples("t1", [first, {"stored": None, "seconds": 0.5, "alpha": "x"}])
    assert path == "samples/t1.csv"
    with (folder.path / path).open(newline="") as file:
        head, *rows = csv.reader(file)
    assert (head, rows) == (["seconds", "stored", "alpha", "zeta"], [["0.25", "10", "", "1"], ["0.5", "", "x", ""]])


def test_a_trial_whose_id_is_a_path_is_refused(folder: RunFolder) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a file"):
        folder.write_samples("../t1", [])


def test_the_summary_is_read_back_from_folder_and_file_and_latest_points_at_it(folder: RunFolder) -> None:
    folder.write_summary(run_summary(run=folder.run))
    assert read_summary(folder.path) == run_summary(run=folder.run)
    assert read_summary(folder.path.parent / "latest" / "summary.json") == run_summary(run=folder.run)
    assert not list(folder.path.glob(".*"))


def test_a_folder_that_can_be_written_stays_empty(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "results")
    assert list((tmp_path / "new" / "results").iterdir()) == []


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path, connectors: Path) -> None:
    (tmp_path / "results").write_text("")
    for root in (tmp_path / "results", tmp_path / "results" / "below"):
        for use in (check_writable, lambda at: RunFolder.create(at, PLAN, connectors)):
            with pytest.raises(UserError, match=r"cannot be written .* move away the file"):
                use(root)


@pytest.mark.skipif(not FULL_DISK.exists(), reason="there is no /dev/full to stand for a full disk")
def test_a_full_disk_is_a_line_that_says_so(folder: RunFolder) -> None:
    folder.trials_path.symlink_to(FULL_DISK)
    with pytest.raises(UserError, match=r"trials\.jsonl: cannot be written \(No space left on device\); free some"):
        folder.append_trial(trial())


def test_a_folder_in_the_place_of_latest_is_not_removed(folder: RunFolder) -> None:
    (folder.path.parent / "latest").unlink()
    (folder.path.parent / "latest" / "mine").mkdir(parents=True)
    with pytest.raises(UserError, match="latest: cannot be written"):
        folder.write_summary(run_summary(run=folder.run))
    assert (folder.path.parent / "latest" / "mine").is_dir()
    assert read_summary(folder.path) == run_summary(run=folder.run)
    assert {file.name for file in folder.path.parent.iterdir()} == {"latest", folder.run}
