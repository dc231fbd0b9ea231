"""The command `size` on stored runs and without any: which it reads, what it prints, and how it ends."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sinkbench.analysis.latency import latency_of
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import MODES
from sinkbench.results import Connections, Lag
from sinkbench.runs.store import RunFolder, read_trials
from sinkbench.summary.cells import summary_of
from tests.support.commands import Command
from tests.support.trials import connectors_in, trial

CPU = {"kafka": 0.5, "connect": 6.0, "postgres": 10.0}
LATENCY = latency_of([120_000] * 9_999)
BOUNDED = Lag(verdict="bounded", growth_per_second=0)
JDBC, BULK = "postgres/jdbc", "elasticsearch/camel-bulk"
# Days of November.
SCALING, SUSTAIN, EARLIER, QUICK = range(21, 25)


def store(
    root: Path, day: int, content: dict[str, Any], count: int = 3, *, complete: bool = True, failed: str = ""
) -> str:
    """A run of that plan, in which six tasks store twice as much as three, and twelve less than four times."""
    plan = MODES[content.get("mode", "drain")].model_validate({"seed": 1, **content})
    connectors = connectors_in(root, JDBC, BULK)
    folder = RunFolder.create(root / "results", plan, connectors, datetime(2026, 11, day, tzinfo=UTC))
    cells = expand(plan, 3)
    for cell in cells:
        rate = cell.offered or 30_000 * cell.tasks / (1 + 0.05 * (cell.tasks - 1))
        seen: dict[str, Any] = {"cpu_seconds_per_million": CPU, "invalid": [failed] * bool(failed)}
        seen["connections"] = Connections(clients_peak=6 * cell.tasks)
        if cell.offered:
            seen |= {"latency_ms": LATENCY, "offered_records_per_second": rate, "lag": BOUNDED}
        for block in range(1, count + 1):
            name = f"{cell.sink}{cell.tasks}-{block}"
            folder.append_trial(trial(rate - block, cell, trial=name, block=block, **seen))
    taken = read_trials(folder.trials_path)
    folder.write_summary(summary_of(folder.run, plan, cells, taken, complete=complete, environment={}))
    return folder.run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A scaling of jdbc, a constant load on it, and two quick runs of two pipelines."""
    store(tmp_path, SCALING, {"name": "scaling", "pipelines": [JDBC], "multiples": [1, 2, 4, 8]})
    load = {"records_per_second": [60_000], "seconds": 20}
    store(tmp_path, SUSTAIN, {"name": "sustain", "mode": "sustain", "pipelines": [JDBC], "sustain": load})
    for day in (EARLIER, QUICK):
        store(tmp_path, day, {"name": "quick", "pipelines": [JDBC, BULK]})
    return tmp_path / "results"


def asked(sinkbench: Command, *arguments: object) -> Any:
    return json.loads(sinkbench.done("size", *arguments, "--json"))


@pytest.mark.parametrize(("plan", "why"), [("sustain", "has mode sustain"), ("changes", "load.changes")])
def test_a_plan_of_which_no_size_follows_is_refused_before_a_race(plan: str, why: str, sinkbench: Command) -> None:
    told = sinkbench.refused("size", "--rate", "100", "--race", plan)
    assert told.startswith(f"sinkbench: --race {plan}: ")
    assert why in told
    assert told.rstrip().endswith("name a plan of drains, such as quick")
    assert told.count("\n") == 1


def test_records_that_no_load_can_have_are_refused_before_a_race(sinkbench: Command) -> None:
    told = sinkbench.refused("size", "--rate", "100", "--race", "quick", "--bytes", "2000000")
    assert told == "sinkbench: --bytes 2e+06: Input should be less than or equal to 1000000, to be raced\n"


def test_pipelines_are_compared_with_records_of_the_newest_run(results: Path, sinkbench: Command) -> None:
    store(results.parent, 28, {"name": "large", "pipelines": [BULK], "load": {"record_bytes": 2_048}})
    told = sinkbench.done("size", "--rate", 2_000, "--results", results)
    assert told.startswith("Asked: 2,000 records/s of 2,048 bytes, 30 % headroom\n")
    assert "  postgres/jdbc: bytes: measured with records of 512 bytes; race with" in told


def test_the_newest_runs_of_each_mode_and_the_scaling_are_read(results: Path, sinkbench: Command) -> None:
    found = asked(sinkbench, "--rate", "20000", "--p99", "1s", "--results", results)
    assert [run[6:8] for run in found["runs"]] == [str(day) for day in (QUICK, SUSTAIN, SCALING)]
    jdbc, bulk = found["pipelines"]
    assert (jdbc["pipeline"], jdbc["state"], jdbc["curve"]) == ("postgres/jdbc", "qualifies", "law")
    assert jdbc["figures"]["p99_ms"]["value"] == pytest.approx(120, rel=0.01)
    assert jdbc["figures"]["cores"]["value"] == pytest.approx(16.5 * 0.02)
    assert (bulk["state"], bulk["curve"]) == ("not decided", "line")
    assert bulk["not_decided"][0].startswith("p99: no constant load")


def test_a_newer_failure_is_read_and_holds_for_as_many_tasks(results: Path, sinkbench: Command) -> None:
    content = {"name": "connections", "pipelines": [BULK], "multiples": [8]}
    run = store(results.parent, 28, content, failed="no connections")
    found = asked(sinkbench, "--rate", "20000", "--results", results)
    assert found["runs"][0] == run
    assert [each["state"] for each in found["pipelines"]] == ["qualifies", "qualifies"]
    found = asked(sinkbench, "--rate", "580000", "--headroom", "0", "--results", results)
    (bulk,) = (each for each in found["pipelines"] if each["fails"])
    assert "with 24: invalid: no connections" in bulk["fails"][0]


def test_what_is_printed_fits_a_screen_and_says_what_is_assumed(results: Path, sinkbench: Command) -> None:
    told = sinkbench.done("size", "latest", "--rate", 20_000, "--keep-days", 7, "--results", results).splitlines()
    assert told[0] == "Asked: 20,000 records/s of 512 bytes, 30 % headroom"
    assert told[1] == "From 20261124T000000Z-quick"
    assert "Assumed: 2 cores a worker, 1 may fail" in told[-1]
    assert (len(told) <= 40, max(map(len, told)) <= 100) == (True, True)


def test_a_run_is_named_as_everywhere_and_one_that_is_not_finished_says_so(results: Path, sinkbench: Command) -> None:
    short = store(results.parent, 28, {"name": "short", "pipelines": [JDBC]}, 2, complete=False)
    # It is not among those that are read without a name.
    assert "short" not in str(asked(sinkbench, "--rate", "9", "--results", results)["runs"])
    code, out, _ = sinkbench("size", "latest", "--rate", 9, "--results", results)
    told = " ".join(out.split())
    assert code == 3
    assert f"From {short} (not finished)" in told
    assert f"postgres/jdbc: rate: 2 final trials, 3 are needed: sinkbench resume {short}" in told
    assert "is the beginning of 5 runs" in sinkbench.refused("size", "2026", "--rate", 9, "--results", results)


def test_the_exit_code_says_whether_any_qualifies(results: Path, sinkbench: Command) -> None:
    for more, code in (((), 0), (("--queries", "all"), 3)):
        assert sinkbench("size", "--rate", 20_000, "--results", results, *more).code == code
    ended = sinkbench("size", f"202611{SCALING}", "--rate", 9_000_000, "--results", results)
    assert (ended.code, "by the fitted law" in ended.out) == (1, True)


def test_without_a_run_the_commands_that_measure_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    told = sinkbench.refused("size", "--rate", 20_000)
    for plan in ("scaling", "capacity", "sustain"):
        assert f"`sinkbench race {plan}`" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "Missing option '--rate'"),
        ("--rate 0", "'--rate': Input should be greater"),
        ("--rate 9 --bytes -1", "'--bytes': Input should be greater"),
        ("--rate 9 --p99 1", "--p99 1: must be a time with its unit"),
        ("--rate 9 --p99 0.5ms", "is below what a poll of Kafka and a write take"),
        ("--rate 9 --queries some", "--queries some: must be all, none, or how many"),
        ("--rate 9 --headroom 1", "'--headroom': Input should be less"),
        ("--rate 9 --keep-days 0", "'--keep-days': Input should be"),
        ("--rate 9 --workers-may-fail -1", "'--workers-may-fail': Input should be"),
        ("--rate 9 --cores-per-worker nan", "'--cores-per-worker': Input should be"),
        ("nowhere --rate 9", "nowhere: is no run in"),
    ],
)
def test_what_cannot_be_asked_ends_in_one_line(tmp_path: Path, arguments: str, words: str, sinkbench: Command) -> None:
    assert words in sinkbench.refused("size", *arguments.split(), "--results", tmp_path)
