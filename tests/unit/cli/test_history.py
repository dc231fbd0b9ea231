"""The history of runs: what is added is kept, and what changed is found, never across machines or plans."""

import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sinkbench.place import CHECKOUT
from sinkbench.tables.history import Row, add, changes, read
from tests.frozen.make import stored_run
from tests.support.commands import Command

UNKNOWN = ("records_per_second_interval_low", "records_per_second_interval_high", "total_cpu_seconds_per_million")
ABOUT = {**dict.fromkeys(UNKNOWN), **dict.fromkeys(("machine", "plan", "conditions", "cell"), "x"), "passed": True}


def made(day: int, rate: float, **fields: object) -> Row:
    """A cell of a made-up run of that day."""
    about = {**ABOUT, "run": f"run-{day}", "started_at": f"2026-11-{day:02d}T00:00:00Z", "commit": f"c{day}"}
    versions = json.dumps({"camel": "1" if day <= 10 else "2"})
    return {**about, "versions": versions, "records_per_second": rate, **fields}


def fifteen(**later: object) -> list[Row]:
    """Runs whose last five are slower by 20 %, at 3 % noise."""
    rates = 40_000 * np.exp(0.03 * np.random.default_rng(1).standard_normal(15))
    rates[10:] *= 0.8
    return [made(day, float(rate), **(later if day > 10 else {})) for day, rate in enumerate(rates, start=1)]


def test_a_change_is_marked_with_its_run_and_what_else_is_new(tmp_path: Path, sinkbench: Command) -> None:
    file, page, report = tmp_path / "h.parquet", tmp_path / "page.html", tmp_path / "results" / "run-3" / "report.html"
    add(file, fifteen())
    report.parent.mkdir(parents=True)
    report.touch()
    change = r"-(19|2[012])\.\d % records/s since 2026-11-11 00:00 \(commit c10 to c11, camel 1 to 2\)"
    assert re.search(change, sinkbench.done("history", "--file", file))
    sinkbench.done("history", "--file", file, "--html", page, "--results", report.parents[1])
    html = page.read_text()
    assert html.count("<svg") == 1
    assert re.search(change, html.partition("<nav")[0])
    assert re.findall(r'<a href="([^"#]+)">([^<]+)</a>', html) == [("results/run-3/report.html", "run-3")]


@pytest.mark.parametrize("other", [{"machine": "n"}, {"plan": "q"}, {"conditions": "2"}])
def test_a_run_of_another_machine_or_plan_is_apart(other: dict[str, Any], tmp_path: Path) -> None:
    add(tmp_path / "h.parquet", fifteen(**other))
    found = read(tmp_path / "h.parquet")
    assert ([len(rows) for rows in found], [*map(list, map(changes, found))]) == ([10, 5], [[], []])


def test_stored_runs_are_added_once_with_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    first, second = (stored_run(name, tmp_path / "results").name for name in ("pair-a", "pair-b"))
    monkeypatch.chdir(tmp_path)
    assert "there is no history; `sinkbench history add RUN` makes one" in sinkbench.refused("history")
    for names in ([first], [first, second]):
        sinkbench.done("history", "add", *names, "--commit", "abc")
    bulk, (jdbc, later) = read(tmp_path / "results" / "history.parquet")
    assert [row["run"] for row in (*bulk, jdbc, later)] == 2 * [first, second]
    assert (jdbc["commit"], jdbc["started_at"], jdbc["plan"]) == ("abc", "2026-11-26T14:25:06Z", "pair")
    assert (jdbc["machine"][:17], json.loads(jdbc["versions"])["debezium"]) == ("AMD EPYC, 2 cores", "3.6.0.Final")
    assert jdbc["records_per_second_interval_low"] < jdbc["records_per_second"] == pytest.approx(45_005, rel=1e-4)
    # The commit of sinkbench's checkout is that of now, and not of runs that were taken before.
    monkeypatch.chdir(CHECKOUT)
    sinkbench.done("history", "add", first, "--results", tmp_path / "results")
    of_run = json.loads((tmp_path / "results" / first / "summary.json").read_text())["environment"]["commit"]
    assert {row[0]["commit"] for row in read(tmp_path / "results" / "history.parquet")} == {of_run}
    monkeypatch.chdir(tmp_path)
    Path("results/history.parquet").write_text("PAR1" * 9)
    for command in (["history"], ["history", "add", first]):
        assert "results/history.parquet: is no history of this sinkbench (" in sinkbench.refused(*command)


def adding(file: Path, name: str, **options: Any) -> "subprocess.Popen[str]":
    """A process that adds eight runs, one after the other."""
    code = "import sys\nfrom pathlib import Path\nfrom tests.unit.cli.test_history import add, made\ntry:\n"
    code += "    for day in range(1, 9): add(Path(sys.argv[1]), [made(day, 1.0, run=f'{sys.argv[2]}-{day}')])\n"
    code += "except Exception as error: sys.exit(str(error))"
    return subprocess.Popen([sys.executable, "-c", code, file, name], stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.long
def test_two_processes_that_add_at_once_are_both_kept(tmp_path: Path) -> None:
    file = tmp_path / "h.parquet"
    assert [each.communicate()[1] for each in [adding(file, name) for name in "ab"]] == ["", ""]
    assert {row["run"] for rows in read(file) for row in rows} == {f"{n}-{day}" for n in "ab" for day in range(1, 9)}


@pytest.mark.long
def test_a_disk_that_takes_no_more_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "h.parquet"
    add(file, fifteen())
    before = file.read_bytes()
    # No file may grow beyond 100 bytes.
    process = adding(file, "a", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
    assert f"{file}: cannot be written (File too large)" in process.communicate()[1]
    assert (file.read_bytes(), [*tmp_path.iterdir()]) == (before, [file])
