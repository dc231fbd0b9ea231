"""What a race leaves that was killed, or that ends in bad luck: every command reads it up to its last whole trial."""

import csv
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sinkbench.plan.cells import expand
from sinkbench.plan.plan import load_plan
from sinkbench.results import Limit, RunSummary
from sinkbench.runs.reader import load_run, load_summary
from sinkbench.runs.store import RunFolder, read_summary, read_trials
from sinkbench.summary.cells import summary_of
from tests.support.commands import Command
from tests.support.counts import count
from tests.support.samplerun import keep_run

LIMIT = Limit(sink="postgres", way="COPY", records_per_second=160_000.0, connections=2, batch=1024)
PIPELINES = ("postgres/jdbc", "elasticsearch/camel-bulk")
ENVIRONMENT = {"stack": "local", "cpu_count": 2, "workers": 3}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six blocks of two cells, as it ended."""
    return keep_run(tmp_path_factory.mktemp("whole") / "results", PIPELINES, multiples=(1,), blocks=6, seconds=4)


def cut(whole: Path, copy: Path, trials: int, summed: int | None) -> Path:
    """A copy of a run that was killed after so many trials, whose summary had so many; None: it had none yet."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(whole, copy)
    folder = RunFolder(copy)
    every = read_trials(folder.trials_path)
    folder.trials_path.unlink()
    for each in every[:trials]:
        folder.append_trial(each)
    if summed is None:
        folder.summary_path.unlink()
    else:
        folder.write_summary(summed_up(copy, summed, complete=False))
    return copy


def summed_up(run: Path, trials: int, *, complete: bool) -> RunSummary:
    """What a race writes down of the first trials of a run."""
    folder = RunFolder(run)
    plan = load_plan(folder.plan_path, run / "connectors")
    taken = read_trials(folder.trials_path)[:trials]
    more = {"environment": ENVIRONMENT, "limits": [LIMIT], "resumed": ["now"]}
    return summary_of(folder.run, plan, expand(plan, 3), taken, complete=complete, **more)


@settings(max_examples=count(20, 4), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trials=st.integers(1, 12), behind=st.integers(0, 12), torn=st.booleans())
def test_a_run_that_was_killed_is_read_up_to_its_last_whole_trial(
    whole: Path, tmp_path: Path, trials: int, behind: int, torn: bool
) -> None:
    run = cut(whole, tmp_path / "results" / "killed", trials, max(trials - behind, 0))
    if torn:
        with (run / "trials.jsonl").open("a") as lines:
            lines.write((whole / "trials.jsonl").read_text().splitlines()[-1][:700])
    assert load_summary(run) == summed_up(run, trials, complete=False)
    kept = load_run(run / "summary.json")
    assert kept.summary == load_summary(run)
    assert sum(cell.trials for cell in kept.summary.cells) == len(kept.trials) == trials


def test_a_run_without_a_summary_that_ends_in_zeros_has_its_trials_but_does_not_know_its_machine(
    whole: Path, tmp_path: Path
) -> None:
    run = cut(whole, tmp_path / "results" / "killed", 4, None)
    with (run / "trials.jsonl").open("ab") as lines:
        lines.write(b"\0" * 4096)
    found = load_summary(run)
    assert (found.run, found.complete, found.environment) == ("killed", False, {})
    assert sum(cell.trials for cell in found.cells) == 4


def test_a_summary_of_a_plan_that_is_gone_is_read_as_it_stands(whole: Path, tmp_path: Path) -> None:
    run = cut(whole, tmp_path / "results" / "killed", 4, 3)
    (run / "plan.yaml").write_text("name: other\nunheard_of: 1\n")
    assert load_summary(run) == read_summary(run)
    # One that has ended is not summed up again.
    ended = Path(shutil.copytree(whole, tmp_path / "results" / "ended"))
    (ended / "trials.jsonl").write_text("not read\n")
    assert load_summary(ended) == read_summary(whole)


def test_every_command_takes_a_run_that_was_killed(whole: Path, tmp_path: Path, sinkbench: Command) -> None:
    run = cut(whole, tmp_path / "results" / "20261121T034800Z-sample", 7, 6)
    rows = list(csv.DictReader(io.StringIO(sinkbench.done("export", run, "--format", "csv"))))
    assert [(row["complete"], row["resumed"]) for row in rows] == [("false", "1")] * 2
    assert sum(int(row["trials"]) for row in rows) == 7
    sinkbench.done("export", run, "--format", "json")
    assert "(not finished)" in sinkbench.done("export", run, "--format", "md")
    code, said, _ = sinkbench("compare", whole, run)
    assert (code, "(plan sample, 7 trials, not finished, resumed now)" in said) == (3, True)
    sinkbench.done("show", run)
    sinkbench.done("report", run)
    page = (run / "report.html").read_text()
    assert ("not finished" in page, "resumed now" in page) == (True, True)
    row = sinkbench.done("runs", "--results", run.parent).splitlines()[2].split()
    assert row[-5:] == ["7", "no", "no", "resumed", "now"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda run: (run / "summary.json").write_text("{"), "summary.json: is not JSON"),
        (
            lambda run: (run / "summary.json").write_text('{"format": 2}'),
            "has format 2, this sinkbench reads format 1;",
        ),
        (lambda run: (run / "summary.json").write_text("[]"), "summary.json: is not the summary of a run (Input"),
        (lambda run: (run / "summary.json").write_text('{"format": 1}'), "is not the summary of a run (run: "),
        (lambda run: (run / "trials.jsonl").write_text("{}\n"), "trials.jsonl:1: is not a trial"),
        (
            lambda run: [(run / name).unlink() for name in ("summary.json", "trials.jsonl")],
            "has no trial: its race has just begun or was killed; wait for it, or race again",
        ),
        (lambda run: [shutil.rmtree(run), run.mkdir()], "is no run, there is no summary.json in it"),
        (lambda run: shutil.rmtree(run), "there is no such file; name a run"),
    ],
    ids=["torn", "future format", "list", "no fields", "damaged trial", "only begun", "empty folder", "no folder"],
)
@pytest.mark.parametrize("command", ["report", "compare", "export", "resume", "runs"])
def test_every_command_refuses_a_damaged_run_in_one_line(
    command: str, damage: Callable[[Path], object], said: str, whole: Path, tmp_path: Path, sinkbench: Command
) -> None:
    run = cut(whole, tmp_path / "results" / "20261121T034800Z-sample", 3, 3)
    damage(run)
    if command == "runs":
        # It lists what there is all the same.
        told = sinkbench.done("runs", "--results", run.parent)
        assert not run.exists() or said in told
        return
    more = {"compare": [whole], "export": ["--format", "csv"]}
    assert said in sinkbench.refused(command, run, *more.get(command, []))


# Ends with 77 where nothing can be mounted; then it runs a command that can write nothing below $0.
READ_ONLY = (
    'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && ! touch "$0/x" 2> /dev/null || exit 77; exec "$@"'
)
# Runs the commands that it reads, and writes the exit code and the errors of each.
COMMANDS = """
import contextlib, io, json, sys
from sinkbench.cli.main import main
ends = []
for command in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        ends.append((main(command), said.getvalue()))
json.dump(ends, sys.stdout)
"""


@pytest.mark.long
def test_results_on_a_read_only_disk_are_refused_in_a_line_before_anything_starts(whole: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    cut(whole, disk / "results" / "killed", 12, 11)
    clusters = tmp_path / "clusters.yaml"
    clusters.write_text("kafka: {bootstrap: '127.0.0.1:1'}\nconnect: {urls: ['http://127.0.0.1:1'], workers: 3}\n")
    plan = tmp_path / "plan.yaml"
    plan.write_text("pipelines: [postgres/jdbc]\n")
    run = str(disk / "results" / "killed")
    refused = (
        ("race", str(plan), "--stack", str(clusters), "--results", str(disk / "results")),
        ("race", str(plan), "--stack", str(clusters), "--results", str(disk / "new")),
        ("resume", run),
        ("report", run),
        ("export", run, "--format", "csv", "--to", str(disk / "out.csv")),
    )
    read = (("runs", "--results", str(disk / "results")), ("export", run, "--format", "csv"), ("compare", run, run))
    if shutil.which("unshare") is None:
        pytest.skip("no disk can be mounted read-only here")
    # One process for all commands: most of a command's time is its start.
    mounted = ["unshare", "--mount", "--map-root-user", "sh", "-c", READ_ONLY, str(disk)]
    command = [*mounted, sys.executable, "-c", COMMANDS]
    done = subprocess.run(command, input=json.dumps([*refused, *read]), capture_output=True, text=True, check=False)
    if not done.stdout:
        pytest.skip(f"no disk can be mounted read-only here: {done.stderr}")
    ends = json.loads(done.stdout)
    for code, said in ends[: len(refused)]:
        assert code == 2, said
        assert "cannot be written (Read-only file system); its disk is read-only" in said
        assert said.count("\n") == 1
    assert [code for code, _ in ends[len(refused) :]] == [0] * len(read), ends
