"""Taking up a run: what is said of one that cannot be, or need not be."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench import environment
from sinkbench.errors import ResultsError, UserError
from sinkbench.plan.cells import blocks, expand
from sinkbench.plan.plan import Plan
from sinkbench.race.resume import Unfinished, changes, load_unfinished, run_folder
from sinkbench.runs.store import RunFolder, read_summary
from sinkbench.secrets import conceal
from sinkbench.summary.cells import summary_of
from sinkbench.summary.selftest import is_selftest, noise_plan, overhead_plan
from tests.support.commands import Command
from tests.support.present import present
from tests.support.trials import connectors_in, trial

ENVIRONMENT: dict[str, Any] = {
    **{"stack": "local", "unmeasured": [], "workers": 3, "cpu_model": "Xeon", "cpu_count": 2},
    **{"memory_bytes": 25_000_000_000, "kernel": "6.1.0", "system": "Debian", "commit": "abc"},
    "versions": {"connect": "4.3.1", "postgres": "15.1"},
    "plugins": {"JdbcSinkConnector": "3.6.0"},
}
PLAN: dict[str, Any] = {"name": "mine", "pipelines": ["postgres/jdbc", "elasticsearch/camel-bulk"], "seed": 5}


@pytest.fixture
def connectors(tmp_path: Path) -> Path:
    return connectors_in(tmp_path, *PLAN["pipelines"], text='{"config": {"batch.size": "500"}}')


def keep(connectors: Path, taken: int = 3, plan: Plan | None = None, **fields: object) -> RunFolder:
    """A run that was interrupted after so many of its six trials."""
    plan = plan or Plan.model_validate({**PLAN, **fields})
    cells = expand(plan, 3)
    folder = RunFolder.create(connectors.parent / "results", plan, connectors)
    order = [(number, cell) for number, block in enumerate(blocks(cells, 3, 5), start=1) for cell in block]
    trials = [trial(1000.0 + block, cell, trial=f"t{n}", block=block) for n, (block, cell) in enumerate(order[:taken])]
    for each in trials:
        folder.append_trial(each)
    more = {"complete": False, "environment": ENVIRONMENT, "resumed": []}
    folder.write_summary(summary_of(folder.run, plan, cells, trials, **more))
    return folder


def edit(file: Path, **keys: str) -> None:
    """Sets these keys of a connector file."""
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "config": {**content["config"], **keys}}))


def unfinished(folder: RunFolder, connectors: Path) -> Unfinished:
    return present(load_unfinished(folder.path, connectors))


def refusal(run: Unfinished | RunFolder, connectors: Path, now: dict[str, Any] = ENVIRONMENT) -> str:
    """The line with which a run is not taken up where this is found now."""
    with pytest.raises(ResultsError) as refused:
        (run if isinstance(run, Unfinished) else unfinished(run, connectors)).check(now, connectors)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_run_is_found_by_its_folder_by_latest_and_by_its_summary_under_its_own_name(
    connectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = keep(connectors)
    monkeypatch.chdir(connectors.parent)
    for path in (folder.path, Path("results/latest"), folder.summary_path, Path("results/latest/summary.json")):
        assert run_folder(path).path == Path("results") / folder.run
        assert load_unfinished(path, connectors).folder.run == folder.run
    monkeypatch.chdir(folder.path)
    assert run_folder(Path()).run == folder.run


@pytest.mark.parametrize("taken", [0, 5])
def test_a_run_on_the_same_machine_may_go_on(taken: int, connectors: Path) -> None:
    run = unfinished(keep(connectors, taken), connectors)
    run.check(ENVIRONMENT, connectors)
    assert (len(run.trials), len(run.left)) == (taken, 1 if taken == 5 else 2)


def test_all_that_changed_is_listed_in_one_line(connectors: Path) -> None:
    run = unfinished(keep(connectors), connectors)
    file = connectors / "postgres" / "jdbc.json"
    edit(file, **{"batch.size": "1000"})
    now = {**ENVIRONMENT, "kernel": "6.2.0", "versions": {"connect": "4.3.1", "postgres": "15.2", "extra": "1"}}
    said = refusal(run, connectors, now)
    assert said.startswith(f"{run.folder.path}: cannot be resumed, since trials before and after would not be alike; ")
    for change in (
        "environment kernel was 6.1.0, is 6.2.0",
        "environment versions.postgres was 15.1, is 15.2",
        "environment versions.extra was (none), is 1",
        "connectors postgres/jdbc config.batch.size was 500, is 1000",
    ):
        assert f"; {change};" in said
    assert "connect was" not in said
    file.unlink()
    assert "connectors postgres/jdbc was listed, is (none)" in refusal(run, connectors)


def test_what_is_not_asked_yet_is_not_missed_and_kafkas_part_is_compared(
    connectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka, postgres = {"kafka": {"acks": "all"}}, {"postgres": {"fsync": "on"}}
    monkeypatch.setitem(ENVIRONMENT, "durability", {**kafka, **postgres})
    monkeypatch.setitem(ENVIRONMENT, "sink_settings", {"postgres": {}})
    run = unfinished(keep(connectors), connectors)
    run.check({"stack": "local", "workers": 3}, connectors)
    run.check({**ENVIRONMENT, "durability": kafka, "sink_settings": {}}, connectors)
    for now, said in (
        ({"stack": "compose", "workers": 2}, "stack was local, is compose; environment workers was 3, is 2;"),
        ({"durability": {"kafka": {"acks": "1"}}}, "durability.kafka.acks was all, is 1"),
        ({"durability": {**kafka, "postgres": {"fsync": "off"}}}, "durability.postgres.fsync was on, is off"),
    ):
        assert f"environment {said}" in refusal(run, connectors, now)


def test_a_plan_that_was_edited_is_refused(connectors: Path) -> None:
    folder = keep(connectors)
    text = folder.plan_path.read_text()
    folder.plan_path.write_text(text.replace("record_bytes: 512", "record_bytes: 1024"))
    assert "plan.yaml is not the plan that ran: it was edited, or this sinkbench" in refusal(folder, connectors)
    folder.plan_path.write_text(text.replace("seed: 5", "seed: 6"))
    assert "plan seed was 5, is 6" in refusal(folder, connectors)


def test_a_secret_that_was_taken_out_is_not_compared_and_not_shown(connectors: Path) -> None:
    secret = conceal("Tr0ub4dor&3")
    file = connectors / "postgres" / "jdbc.json"
    edit(file, url=f"x://a:{secret}@host")
    folder = keep(connectors)
    edit(file, url="x://a:another@host")
    run = unfinished(folder, connectors)
    run.check(ENVIRONMENT, connectors)
    edit(file, url="x://a:another@elsewhere")
    assert "config.url was x://a:***@host, is x://a:***@elsewhere;" in refusal(run, connectors)


def test_a_plan_with_a_secret_is_refused_since_that_was_not_kept(connectors: Path) -> None:
    secret = conceal("correct horse battery")
    entries = [{"pipeline": "postgres/jdbc", "overrides": {"connection.password": secret}}]
    folder = keep(connectors, 1, pipelines=entries)
    assert "plan.yaml has *** where a secret was, which only the first race knew" in refusal(folder, connectors)


@given(st.integers(2**33, 2**40), st.floats(-0.03, 0.03))
def test_a_kernel_that_takes_a_little_more_memory_changes_nothing(memory: int, share: float) -> None:
    now = {**ENVIRONMENT, "memory_bytes": round(memory * (1 + share))}
    found = changes({**ENVIRONMENT, "memory_bytes": memory}, now)
    if abs(share) < 0.009:
        assert found == []
    if abs(share) > 0.011:
        assert [each.what for each in found] == ["environment memory_bytes"]


def test_what_cannot_be_measured_does_not_matter_and_every_other_key_does() -> None:
    for key in environment.machine().keys() | ENVIRONMENT.keys():
        found = changes(ENVIRONMENT, {**ENVIRONMENT, key: "another"})
        changed = [] if key == "unmeasured" else [f"environment {key}"]
        assert [each.what.split(".")[0] for each in found[:1]] == changed


def test_a_selftest_is_not_taken_up(connectors: Path) -> None:
    assert is_selftest(overhead_plan("postgres/jdbc", 5, ["postgres"]))
    folder = keep(connectors, 2, noise_plan("postgres/jdbc", 5).model_copy(update={"seed": 5}))
    with pytest.raises(ResultsError, match="is a selftest, which ends with its time; run `sinkbench selftest` again"):
        load_unfinished(folder.path, connectors)
    assert not is_selftest(Plan.model_validate({**PLAN, "name": "noise"}))


Damage = Callable[[RunFolder], object]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda run: run.summary_path.unlink(), "has no summary.json, which says what it was measured on; race again"),
        (lambda run: run.plan_path.unlink(), "plan.yaml: there is no such plan"),
        (lambda run: run.plan_path.write_text("pipelines: [postgres/jdcb]"), "unknown pipeline 'postgres/jdcb'"),
        (
            lambda run: run.append_trial(trial(1.0, expand(Plan.model_validate({**PLAN, "multiples": [4]}), 3)[0])),
            "trials.jsonl: does not follow from its plan (trial t1 is of cell postgres/jdbc@3x4, which is not in the",
        ),
        (lambda run: (run.path / "connectors/postgres/jdbc.json").write_text("{"), "postgres/jdbc.json: is not JSON"),
    ],
    ids=["no summary", "no plan", "unknown pipeline", "another plan's trial", "damaged connector"],
)
def test_a_run_that_lacks_something_is_refused(damage: Damage, said: str, connectors: Path) -> None:
    folder = keep(connectors)
    damage(folder)
    with pytest.raises(UserError) as refused:
        load_unfinished(folder.path, connectors)
    assert said in str(refused.value)


def test_a_complete_run_has_nothing_to_do_and_ends_as_it_did(connectors: Path, sinkbench: Command) -> None:
    folder = keep(connectors, 6)
    said = sinkbench.done("resume", folder.path.parent / "latest")
    assert f"{folder.run}: all trials are there; the run is complete\n" in said
    done = read_summary(folder.path)
    assert (done.complete, done.resumed, done.passed) == (True, [], True)
    before = folder.summary_path.read_bytes()
    said = sinkbench.done("resume", folder.path)
    assert f"{folder.path}: nothing to do, the run is complete\n" in said
    assert f"results: {folder.path}\n" in said
    assert folder.summary_path.read_bytes() == before
    failed = [each.model_copy(update={"passed": False}) for each in done.cells]
    folder.write_summary(done.model_copy(update={"cells": failed}))
    assert sinkbench("resume", folder.path).code == 1
