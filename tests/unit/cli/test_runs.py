"""The commands for runs that were kept, on whole folders and on those that are none."""

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

from sinkbench.cli.main import main
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.results import Memory, PlanRef
from sinkbench.runs.store import RunFolder, read_trials
from sinkbench.summary.cells import summarize
from sinkbench.tables.export import COLUMNS
from tests.support.trials import connectors_in, run_summary, trial

MACHINE = {"cpu_model": "Xeon", "cpu_count": 2}
FAST = [1030.0, 1000.0, 1010.0, 1020.0, 1015.0, 1005.0]


@pytest.fixture
def connectors(tmp_path: Path) -> Path:
    pipelines = ("postgres/jdbc", "elasticsearch/camel-bulk")
    return connectors_in(tmp_path, *pipelines, text='{"config": {"batch.size": "500"}}')


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def keep(
    results: Path, connectors: Path, rates: list[float], held: float | None = None, foreign: float | None = None
) -> Path:
    """A run of one cell at these rates; Kafka `held` so many bytes and others took `foreign` cores; its folder."""
    plan = Plan.model_validate({"name": "quick", "pipelines": ["postgres/jdbc"], "seed": 1})
    folder = RunFolder.create(results, plan, connectors)
    cells = expand(plan, 3)
    memory = {"kafka": Memory(resident_bytes=held)} if held else {}
    figures = {"peak_memory": memory, "total_peak_memory_bytes": held, "foreign_cores": foreign}
    figures["cpu_seconds_per_million"] = {"kafka": 0.5, "connect": None}
    for block, rate in enumerate(rates, start=1):
        folder.append_trial(trial(rate, cells[0], trial=f"t{block}", block=block, **figures))
    summed = summarize(cells, read_trials(folder.trials_path))
    about = {"plan": PlanRef(name="quick", sha256="0"), "environment": {**MACHINE, "stack": "local"}}
    folder.write_summary(run_summary(*summed, run=folder.run, **about))
    return folder.path


def test_a_run_that_is_slower_by_more_than_it_may_be_ends_with_exit_code_1(
    results: Path, connectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast, slow = keep(results, connectors, FAST), keep(results, connectors, [rate * 0.8 for rate in FAST])
    # By its folder, by its summary, and by `latest`.
    assert main(["compare", str(fast / "summary.json"), str(results / "latest"), "--fail-if-slower", "5%"]) == 1
    assert capsys.readouterr().err == ("--fail-if-slower 5%: slower by more than 5 %: postgres/jdbc@3x1 (20.0 %)\n")
    assert main(["compare", str(fast), str(slow), "--fail-if-slower", "25"]) == 0
    assert main(["compare", str(slow), str(fast), "--fail-if-slower", "0"]) == 0
    assert main(["compare", str(fast), str(fast), "--fail-if-slower", "nonsense"]) == 2
    assert "--fail-if-slower nonsense: is not a share" in capsys.readouterr().err


def test_a_run_that_may_be_slower_for_what_disturbed_it_ends_with_exit_code_3(
    results: Path, connectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = keep(results, connectors, FAST, foreign=0.0)
    disturbed = keep(results, connectors, [rate * 0.8 for rate in FAST], foreign=0.5)
    assert main(["compare", str(quiet), str(disturbed), "--fail-if-slower", "5%"]) == 3
    out, err = capsys.readouterr()
    assert "postgres/jdbc@3x1 foreign load " in out.partition("95 %")[0]
    assert "same" not in out
    assert err == (
        "--fail-if-slower 5%: cannot tell: slower by more than 5 %, which a disturbance can explain; run it again:"
        " postgres/jdbc@3x1 (20.0 %)\n"
    )
    assert main(["compare", str(quiet), str(disturbed)]) == 0


def test_a_run_of_one_trial_is_compared_and_tells_nothing(
    results: Path, connectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast, short = keep(results, connectors, FAST), keep(results, connectors, [1000.0])
    assert main(["compare", str(fast), str(short)]) == 3
    assert "too few trials to tell *" in capsys.readouterr().out
    assert main(["compare", str(fast), str(short), "--fail-if-slower", "5"]) == 3
    assert main(["export", str(short), "--format", "md"]) == 0


def test_several_runs_are_exported_as_one_table(
    results: Path, connectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (str(keep(results, connectors, FAST)) for _ in range(2))
    assert main(["export", first, second]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["run"] for row in rows] == [Path(first).name, Path(second).name]
    assert rows[0]["started_at"].replace("-", "").replace(":", "") == rows[0]["run"].removesuffix("-quick")
    assert main(["export", first, second, "--format", "md"]) == 2


def test_parquet_has_the_rows_of_csv_with_types(
    results: Path, connectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, runs = results.parent / "it's.parquet", [str(keep(results, connectors, rates)) for rates in (FAST, FAST[:2])]
    assert main(["export", *runs]) == main(["export", *runs, "--format", "parquet", "--to", str(file)]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    found = duckdb.read_parquet(str(file))
    types = dict(zip(found.columns, map(str, found.types), strict=True))
    assert list(types) == list(rows[0])
    assert found.select("run", "records_per_second", "passed").fetchall() == [
        (Path(run).name, rate, True) for run, rate in zip(runs, (1012.5, 1015.0), strict=True)
    ]
    # What was not measured has a type, too.
    assert (types["latency_p99_ms"], types["tasks_before"], types["complete"]) == ("DOUBLE", "BIGINT", "BOOLEAN")
    # CSV writes 1.0, true and nothing.
    shown = [["" if value is None else str(value).lower() for value in row] for row in found.fetchall()]
    assert [[value.lower() for value in row.values()] for row in rows] == shown


def test_runs_are_listed_newest_first_with_what_they_are(
    results: Path, connectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = keep(results, connectors, FAST)
    for name in ("20200101T000000Z-old", "20990101T000000Z-new", "mine"):
        (results / name).mkdir()
    (results / "20990101T000000Z-new" / "plan.yaml").write_text("name: new\n")
    assert main(["runs", "--results", str(results)]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split()[0] for row in rows if row] == ["20990101T000000Z-new", run.name, "20200101T000000Z-old", "mine"]
    assert "has no trial: its race has just begun or was killed; wait for it, or race again" in rows[0]
    assert rows[1].split()[3:] == ["quick", "Xeon,", "2", "cores", "local", "6", "yes", "yes"]
    assert rows[2].split()[1:3] == ["2020-01-01", "00:00:00"]
    assert "is no run" in rows[3]


@pytest.mark.parametrize("command", ["show", "show --all", "report", "export", "export --format md", "compare"])
def test_a_run_without_trials_has_no_answer_and_says_why(
    command: str, results: Path, connectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunFolder(keep(results, connectors, []))
    assert main([*command.split(), str(run.path), "--results", str(results)]) == 2
    why = f"no answer: none of its trials has ended; take them: sinkbench resume {run.run}"
    assert capsys.readouterr().err == f"sinkbench: {run.path}: {why}\n"


def test_a_folder_without_runs_says_so_and_none_at_all_is_refused(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "--results", str(results)]) == 2
    assert f"{results}: there are no results; `sinkbench race quick` makes some" in capsys.readouterr().err
    results.mkdir()
    assert main(["runs", "--results", str(results)]) == 0
    assert capsys.readouterr().out == f"no runs in {results}\n"


def test_a_run_is_named_as_people_expect_it(
    results: Path, connectors: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = keep(results, connectors, FAST[:3]), keep(results, connectors, [2 * rate for rate in FAST[:3]])
    old = old.rename(results / "20200101T000000Z-quick")
    monkeypatch.chdir(results.parent)
    for name, run in ((None, new), ("latest", new), ("latest~1", old), ("2020", old), (str(old), old)):
        assert main(["show", *([name] if name else [])]) == 0
        rate = "1,010" if run == old else "2,020"
        assert rate in capsys.readouterr().out
    assert main(["show", "20"]) == 2
    assert f"20: is the beginning of 2 runs: {new.name}, {old.name}\n" in capsys.readouterr().err
    assert main(["show", "nothing"]) == 2
    assert f"nothing: is no run in results; there are: {new.name}, " in capsys.readouterr().err
    assert main(["show", "latest~2"]) == 2
    assert "there are 2 runs" in capsys.readouterr().err


def test_compare_takes_the_newest_two_one_or_many(
    results: Path, connectors: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = keep(results, connectors, FAST[:3]).rename(results / "20200101T000000Z-quick")
    two = keep(results, connectors, [rate * 2 for rate in FAST[:3]])
    monkeypatch.chdir(results.parent)
    for names in ([], ["2020"]):
        assert main(["compare", *names]) == 3
        said = capsys.readouterr().out
        assert "the ranges lie apart: A 1,000 to 1,030, B 2,000 to 2,060" in said
    assert main(["compare", one.name, two.name, one.name]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("postgres/jdbc@3x1")]
    assert row.split()[1::2] == ["1,010", "2,020", "1,010"]
    assert main(["compare", "2020", "latest", "2020", "--fail-if-slower", "5"]) == 2
    capsys.readouterr()
    two.rename(results.parent / "elsewhere")
    assert main(["compare"]) == 2
    assert "there are no two runs of one plan" in capsys.readouterr().err


def test_more_of_a_run_is_shown_on_request(results: Path, connectors: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(keep(results, connectors, FAST))
    assert main(["show", run, "--trials", "--pool"]) == 0
    said = capsys.readouterr().out
    assert len([line for line in said.splitlines() if line.startswith("postgres/jdbc")]) == len(FAST)
    assert "--pool: this run has no such data" in said
    assert main(["show", run, "--all"]) == 0
    assert "What each figure means" in capsys.readouterr().out


def test_a_race_by_name_prints_its_summary_as_json_and_nothing_else(
    results: Path, connectors: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(keep(results, connectors, FAST))
    taken: list[Plan] = []
    monkeypatch.setattr("sinkbench.cli.race.the_stack", lambda choice: SimpleNamespace(workers=3, layout=None))
    monkeypatch.setattr(
        "sinkbench.cli.race.run_plan", lambda stack, plan, *rest, **named: (taken.append(plan) or folder, None)
    )
    assert main(["race", "quick", "--trials", "7", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == folder.run
    assert (taken[0].name, taken[0].trials) == ("quick", 7)
    assert main(["race", "quick", "--dry-run"]) == 0
    assert "quick: 6 cells, 3 trials each, about " in capsys.readouterr().out
    assert main(["race", "quik"]) == 2
    assert "quik: is no plan; did you mean 'quick'? plans: acks, " in capsys.readouterr().err
    assert main(["plans"]) == 0
    assert "quick: about " in capsys.readouterr().out


def test_csv_has_a_row_a_cell_and_leaves_empty_what_was_not_measured(
    results: Path, connectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(keep(results, connectors, FAST)), "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert list(row) == [*COLUMNS, "cpu_seconds_per_million.connect", "cpu_seconds_per_million.kafka"]
    assert (row["records_per_second"], row["valid_trials"], row["lost"], row["passed"]) == ("1012.5", "6", "0", "true")
    assert (row["latency_p99_ms"], row["cpu_seconds_per_million.connect"]) == ("", "")
    assert row["cpu_seconds_per_million.kafka"] == "0.5"


def test_a_kept_run_is_priced_by_a_file(
    results: Path, connectors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, prices = keep(results, connectors, FAST, held=2e9), tmp_path / "prices.yaml"
    prices.write_text("currency: EUR\nmemory_gb_hour: 0.005\n")
    before = (run / "summary.json").read_text()
    assert main(["export", str(run), "--format", "csv", "--prices", str(prices)]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["currency"], row["cpu_cost_per_million"]) == ("EUR", "")
    assert float(row["cost_per_million"]) == pytest.approx(0.005 * 2 * (1e6 / 1012.5) / 3600)
    assert row["peak_memory_bytes.kafka"] == "2000000000.0"
    page = tmp_path / "priced.html"
    assert main(["report", str(run), "--to", str(page), "--prices", str(prices)]) == 0
    assert "Prices: 0.005 EUR a GB-hour of memory; cores and disk in no cost." in page.read_text()
    assert (run / "summary.json").read_text() == before
    prices.write_text("currency: EUR\nmemory_gb_hour: 0\n")
    assert main(["report", str(run), "--prices", str(prices)]) == 2
    said = capsys.readouterr().err
    assert f"{prices}:2: memory_gb_hour must be more than 0" in said


def test_a_race_takes_prices_of_a_file_instead_of_the_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, prices = tmp_path / "mine.yaml", tmp_path / "prices.yaml"
    plan.write_text("pipelines: [postgres/jdbc]\nprices: {currency: CHF, core_hour: 1}\n")
    prices.write_text("currency: EUR\ncore_hour: 0.04\n")
    assert main(["race", str(plan), "--show", "--prices", str(prices)]) == 0
    said = capsys.readouterr().out
    assert "currency: EUR" in said
    assert "CHF" not in said
    plan.write_text("pipelines: [postgres/jdbc]\nprices: {currency: CHF, core_hour: -1}\n")
    assert main(["race", str(plan), "--show"]) == 2
    assert f"{plan}:2: prices.core_hour must be more than 0" in capsys.readouterr().err


def test_an_export_or_a_comparison_that_cannot_be_made_is_one_line(
    results: Path, connectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(keep(results, connectors, FAST))
    assert main(["compare", run, run, "--format", "markdwon"]) == 2
    assert capsys.readouterr().err.endswith("is not a format of comparisons; did you mean 'markdown'?\n")
    assert main(["export", run, "--format", "feather"]) == 2
    assert capsys.readouterr().err.endswith(
        "is not a format of exports; known: csv, json, junit, md, openmetrics, parquet\n"
    )
    assert main(["export", run, "--format", "parquet"]) == 2
    assert capsys.readouterr().err.endswith("is not text; name a file to write: --to FILE\n")
    for form in ("csv", "parquet"):
        assert main(["export", run, "--format", form, "--to", str(results)]) == 2
        assert "cannot be written (Is a directory); move away the folder" in capsys.readouterr().err


def test_every_column_of_the_csv_is_documented() -> None:
    documented = (Path(__file__).parents[3] / "docs" / "format.md").read_text()
    assert [column for column in COLUMNS if f"`{column}`" not in documented] == []
