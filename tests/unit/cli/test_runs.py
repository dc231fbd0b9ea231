"""The commands for runs that were kept, on whole folders and on those that are none."""

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.results import Memory, PlanRef
from sinkbench.runs.store import RunFolder, read_trials
from sinkbench.summary.cells import summarize
from tests.support.commands import Command
from tests.support.trials import connectors_in, run_summary, trial

ABOUT = {
    "plan": PlanRef(name="quick", sha256="0"),
    "environment": {"cpu_model": "Xeon", "cpu_count": 2, "stack": "local"},
}
FAST = [1030.0, 1000.0, 1010.0, 1020.0, 1015.0, 1005.0]
SLOW = [rate * 0.8 for rate in FAST]
MARK = "--fail-if-slower"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a command looks for runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results"


def keep(results: Path, rates: list[float], held: float | None = None, foreign: float | None = None) -> Path:
    """A run of one cell at these rates; Kafka `held` so many bytes and others took `foreign` cores; its folder."""
    plan = Plan.model_validate({"name": "quick", "pipelines": ["postgres/jdbc"], "seed": 1})
    folder = RunFolder.create(results, plan, connectors_in(results.parent, "postgres/jdbc", text='{"config": {}}'))
    cells = expand(plan, 3)
    memory = {"kafka": Memory(resident_bytes=held)} if held else {}
    figures = {"peak_memory": memory, "total_peak_memory_bytes": held, "foreign_cores": foreign}
    for block, rate in enumerate(rates, start=1):
        folder.append_trial(trial(rate, cells[0], trial=f"t{block}", block=block, **figures))
    folder.write_summary(run_summary(*summarize(cells, read_trials(folder.trials_path)), run=folder.run, **ABOUT))
    return folder.path


def rows_of(written: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(written)))


def test_a_run_that_is_slower_by_more_than_it_may_be_ends_with_exit_code_1(results: Path, sinkbench: Command) -> None:
    fast, slow = keep(results, FAST), keep(results, SLOW)
    # By its folder, by its summary, and by `latest`.
    code, _, err = sinkbench("compare", fast / "summary.json", results / "latest", MARK, "5%")
    assert (code, err) == (1, "--fail-if-slower 5%: slower by more than 5 %: postgres/jdbc@3x1 (20.0 %)\n")
    sinkbench.done("compare", fast, slow, MARK, 25)
    sinkbench.done("compare", slow, fast, MARK, 0)
    assert "--fail-if-slower nonsense: is not a share" in sinkbench.refused("compare", fast, fast, MARK, "nonsense")


def test_a_run_that_may_be_slower_for_what_disturbed_it_has_exit_code_3(results: Path, sinkbench: Command) -> None:
    quiet, disturbed = keep(results, FAST, foreign=0.0), keep(results, SLOW, foreign=0.5)
    code, out, err = sinkbench("compare", quiet, disturbed, MARK, "5%")
    assert "postgres/jdbc@3x1 foreign load " in out.partition("95 %")[0]
    assert "same" not in out
    why = "slower by more than 5 %, which a disturbance can explain; run it again: postgres/jdbc@3x1 (20.0 %)"
    assert (code, err) == (3, f"--fail-if-slower 5%: cannot tell: {why}\n")
    sinkbench.done("compare", quiet, disturbed)


def test_a_run_of_one_trial_is_compared_and_tells_nothing(results: Path, sinkbench: Command) -> None:
    fast, short = keep(results, FAST), keep(results, [1000.0])
    code, out, _ = sinkbench("compare", fast, short)
    assert (code, "too few trials to tell *" in out) == (3, True)
    assert sinkbench("compare", fast, short, MARK, 5).code == 3
    sinkbench.done("export", short, "--format", "md")


def test_several_runs_are_exported_as_one_table(results: Path, sinkbench: Command) -> None:
    first, second = (keep(results, FAST) for _ in range(2))
    rows = rows_of(sinkbench.done("export", first, second))
    assert [row["run"] for row in rows] == [first.name, second.name]
    assert rows[0]["started_at"].replace("-", "").replace(":", "") == rows[0]["run"].removesuffix("-quick")
    sinkbench.refused("export", first, second, "--format", "md")


def test_a_newest_run_that_cannot_be_read_keeps_no_other_from_being_compared(results: Path, sinkbench: Command) -> None:
    first, second = keep(results, FAST), keep(results, SLOW)
    damaged = results / "20990101T000000Z-quick"
    damaged.mkdir()
    (damaged / "summary.json").write_text("{")
    said = sinkbench.done("compare")
    assert (first.name in said, second.name in said) == (True, True)


def test_parquet_has_the_rows_of_csv_with_types(results: Path, sinkbench: Command) -> None:
    file, runs = results.parent / "it's.parquet", [keep(results, rates) for rates in (FAST, FAST[:2])]
    rows = rows_of(sinkbench.done("export", *runs))
    sinkbench.done("export", *runs, "--format", "parquet", "--to", file)
    found = duckdb.read_parquet(str(file))
    types = dict(zip(found.columns, map(str, found.types), strict=True))
    assert list(types) == list(rows[0])
    assert found.select("run", "records_per_second", "passed").fetchall() == [
        (run.name, rate, True) for run, rate in zip(runs, (1012.5, 1015.0), strict=True)
    ]
    # What was not measured has a type, too.
    assert (types["latency_p99_ms"], types["tasks_before"], types["complete"]) == ("DOUBLE", "BIGINT", "BOOLEAN")
    # CSV writes 1.0, true and nothing.
    shown = [["" if value is None else str(value).lower() for value in row] for row in found.fetchall()]
    assert [[value.lower() for value in row.values()] for row in rows] == shown


def test_runs_are_listed_newest_first_with_what_they_are(results: Path, sinkbench: Command) -> None:
    run = keep(results, FAST)
    for name in ("20200101T000000Z-old", "20990101T000000Z-new", "mine"):
        (results / name).mkdir()
    (results / "20990101T000000Z-new" / "plan.yaml").write_text("name: new\n")
    rows = sinkbench.done("runs", "--results", results).splitlines()[2:]
    assert [row.split()[0] for row in rows if row] == ["20990101T000000Z-new", run.name, "20200101T000000Z-old", "mine"]
    assert "has no trial: its race has just begun or was killed; wait for it, or race again" in rows[0]
    assert rows[1].split()[3:] == ["quick", "Xeon,", "2", "cores", "local", "6", "yes", "yes"]
    assert rows[2].split()[1:3] == ["2020-01-01", "00:00:00"]
    assert "is no run" in rows[3]


@pytest.mark.parametrize("command", ["show", "show --all", "report", "export", "export --format md", "compare"])
def test_a_run_without_trials_has_no_answer_and_says_why(command: str, results: Path, sinkbench: Command) -> None:
    run = keep(results, [])
    why = f"no answer: none of its trials has ended; take them: sinkbench resume {run.name}"
    assert sinkbench.refused(*command.split(), run) == f"sinkbench: {run}: {why}\n"


def test_a_folder_without_runs_says_so_and_none_at_all_is_refused(results: Path, sinkbench: Command) -> None:
    told = sinkbench.refused("runs", "--results", results)
    assert f"{results}: there are no results; `sinkbench race quick` makes some" in told
    results.mkdir()
    assert sinkbench.done("runs", "--results", results) == f"no runs in {results}\n"


def test_a_run_is_named_as_people_expect_it(results: Path, sinkbench: Command) -> None:
    old, new = keep(results, FAST[:3]), keep(results, [2 * rate for rate in FAST[:3]])
    old = old.rename(results / "20200101T000000Z-quick")
    for name, rate in (("", "2,020"), ("latest", "2,020"), ("latest~1", "1,010"), ("2020", "1,010"), (old, "1,010")):
        assert rate in sinkbench.done("show", *([name] if name else []))
    for name, said in {
        "20": f"20: is the beginning of 2 runs: {new.name}, {old.name}\n",
        "nothing": f"nothing: is no run in results; there are: {new.name}, ",
        "latest~2": "there are 2 runs",
    }.items():
        assert said in sinkbench.refused("show", name)


def test_compare_takes_the_newest_two_one_or_many(results: Path, sinkbench: Command) -> None:
    one = keep(results, FAST[:3]).rename(results / "20200101T000000Z-quick")
    two = keep(results, [rate * 2 for rate in FAST[:3]])
    for names in ([], ["2020"]):
        code, said, _ = sinkbench("compare", *names)
        assert (code, "the ranges lie apart: A 1,000 to 1,030, B 2,000 to 2,060" in said) == (3, True)
    said = sinkbench.done("compare", one.name, two.name, one.name)
    (row,) = [line for line in said.splitlines() if line.startswith("postgres/jdbc@3x1")]
    assert row.split()[1::2] == ["1,010", "2,020", "1,010"]
    sinkbench.refused("compare", "2020", "latest", "2020", MARK, 5)
    two.rename(results.parent / "elsewhere")
    assert "there are no two runs of one plan" in sinkbench.refused("compare")


def test_more_of_a_run_is_shown_on_request(results: Path, sinkbench: Command) -> None:
    run = keep(results, FAST)
    said = sinkbench.done("show", run, "--trials", "--pool")
    assert len([line for line in said.splitlines() if line.startswith("postgres/jdbc")]) == len(FAST)
    assert "--pool: this run has no such data" in said
    assert "What each figure means" in sinkbench.done("show", run, "--all")


def test_a_race_by_name_prints_its_summary_as_json_and_nothing_else(
    results: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    folder = RunFolder(keep(results, FAST))
    taken: list[Plan] = []
    monkeypatch.setattr("sinkbench.cli.race.the_stack", lambda *_: SimpleNamespace(workers=3, layout=None))
    monkeypatch.setattr(
        "sinkbench.cli.race.run_plan", lambda stack, plan, *rest, **named: (taken.append(plan) or folder, None)
    )
    assert json.loads(sinkbench.done("race", "quick", "--trials", 7, "--json", "--quiet"))["run"] == folder.run
    assert (taken[0].name, taken[0].trials) == ("quick", 7)
    assert "quick: 6 cells, 3 trials each, about " in sinkbench.done("race", "quick", "--dry-run")
    assert "quik: is no plan; did you mean 'quick'? plans: acks, " in sinkbench.refused("race", "quik")
    assert "quick: about " in sinkbench.done("plans")


def test_a_kept_run_is_priced_by_a_file(results: Path, sinkbench: Command) -> None:
    run, prices, page = keep(results, FAST, held=2e9), Path("prices.yaml"), Path("priced.html")
    prices.write_text("currency: EUR\nmemory_gb_hour: 0.005\n")
    before = (run / "summary.json").read_text()
    (row,) = rows_of(sinkbench.done("export", run, "--format", "csv", "--prices", prices))
    assert (row["currency"], row["cpu_cost_per_million"]) == ("EUR", "")
    assert float(row["cost_per_million"]) == pytest.approx(0.005 * 2 * (1e6 / 1012.5) / 3600)
    assert row["peak_memory_bytes.kafka"] == "2000000000.0"
    sinkbench.done("report", run, "--to", page, "--prices", prices)
    assert "Prices: 0.005 EUR a GB-hour of memory; cores and disk in no cost." in page.read_text()
    assert (run / "summary.json").read_text() == before


def test_a_race_takes_prices_of_a_file_instead_of_the_plans(results: Path, sinkbench: Command) -> None:
    plan, prices = Path("mine.yaml"), Path("prices.yaml")
    plan.write_text("pipelines: [postgres/jdbc]\nprices: {currency: CHF, core_hour: 1}\n")
    prices.write_text("currency: EUR\ncore_hour: 0.04\n")
    said = sinkbench.done("race", plan, "--show", "--prices", prices)
    assert ("currency: EUR" in said, "CHF" in said) == (True, False)


def test_an_export_or_a_comparison_that_cannot_be_made_is_one_line(results: Path, sinkbench: Command) -> None:
    run = keep(results, FAST)
    for command, said in {
        f"compare {run} {run} --format markdwon": "is not a format of comparisons; did you mean 'markdown'?\n",
        f"export {run} --format feather": "is not a format of exports; known: csv, json, junit, md, openmetrics, parq",
        f"export {run} --format csv --to {results}": "cannot be written (Is a directory); move away the folder",
        f"export {run} --format parquet": "is not text; name a file to write: --to FILE\n",
        f"export {run} --format parquet --to {results}": "cannot be written (Is a directory); move away the folder",
    }.items():
        assert said in sinkbench.refused(*command.split())
