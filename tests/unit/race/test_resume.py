"""Taking up a run: what is said of one that cannot be, or need not be."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench import environment, secrets
from sinkbench.cli.main import main
from sinkbench.errors import ResultsError, UserError
from sinkbench.plan.cells import blocks, expand
from sinkbench.plan.plan import Plan
from sinkbench.race.resume import Unfinished, changes, load_unfinished, run_folder
from sinkbench.runs.store import RunFolder, read_summary
from sinkbench.secrets import conceal
from sinkbench.settings import CHECKOUT
from sinkbench.summary.cells import summary_of
from sinkbench.summary.selftest import is_selftest, noise_plan, overhead_plan
from tests.support.trials import trial

ENVIRONMENT: dict[str, Any] = {
    **{"stack": "local", "unmeasured": [], "workers": 3, "cpu_model": "Xeon", "cpu_count": 2},
    **{"memory_bytes": 25_000_000_000, "kernel": "6.1.0", "system": "Debian", "commit": "abc"},
    "versions": {"connect": "4.3.1", "postgres": "15.1"},
    "plugins": {"JdbcSinkConnector": "3.6.0"},
}
PLAN: dict[str, Any] = {"name": "mine", "pipelines": ["postgres/jdbc", "elasticsearch/camel-bulk"], "seed": 5}


@pytest.fixture(autouse=True)
def no_secret_stays() -> Iterator[None]:
    known = set(secrets._forms)
    yield
    secrets._forms.clear()
    secrets._forms.update(known)


@pytest.fixture
def connectors(tmp_path: Path) -> Path:
    folder = tmp_path / "connectors"
    for pipeline in PLAN["pipelines"]:
        (folder / pipeline).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(CHECKOUT / "connectors" / f"{pipeline}.json", folder / f"{pipeline}.json")
    return folder


def keep(connectors: Path, taken: int = 3, plan: Plan | None = None, **fields: object) -> RunFolder:
    """A run that was interrupted after so many of its six trials."""
    plan = plan or Plan.model_validate({**PLAN, **fields})
    cells = expand(plan, 3)
    folder = RunFolder.create(connectors.parent / "results", plan, connectors)
    order = [(number, cell) for number, block in enumerate(blocks(cells, 3, 5), start=1) for cell in block]
    trials = [
        trial(1000.0 + number, cell, trial=f"{place:06x}_{number:03}", block=number)
        for place, (number, cell) in enumerate(order[:taken])
    ]
    for each in trials:
        folder.append_trial(each)
    folder.write_summary(
        summary_of(folder.run, plan, cells, trials, complete=False, environment=ENVIRONMENT, resumed=[])
    )
    return folder


def edit(file: Path, **keys: str) -> None:
    """Sets these keys of a connector file."""
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "config": {**content["config"], **keys}}))


def unfinished(folder: RunFolder, connectors: Path) -> Unfinished:
    found = load_unfinished(folder.path, connectors)
    assert found is not None
    return found


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
    content = json.loads(file.read_text())
    edit(file, **{"batch.size": "1000"})
    now = {**ENVIRONMENT, "kernel": "6.2.0", "versions": {"connect": "4.3.1", "postgres": "15.2", "extra": "1"}}
    with pytest.raises(ResultsError) as refused:
        run.check(now, connectors)
    said = str(refused.value)
    assert said.startswith(f"{run.folder.path}: cannot be resumed, since trials before and after would not be alike; ")
    for change in (
        "environment kernel was 6.1.0, is 6.2.0",
        "environment versions.postgres was 15.1, is 15.2",
        "environment versions.extra was (none), is 1",
        f"connectors postgres/jdbc config.batch.size was {content['config'].get('batch.size', '(none)')}, is 1000",
    ):
        assert f"; {change};" in said
    assert "connect was" not in said
    assert "\n" not in said
    file.unlink()
    with pytest.raises(ResultsError, match=r"connectors postgres/jdbc was listed, is \(none\)"):
        run.check(ENVIRONMENT, connectors)


def test_what_is_not_asked_yet_is_not_missed_and_kafkas_part_is_compared(
    connectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"durability": {"kafka": {"acks": "all"}, "postgres": {"fsync": "on"}}, "sink_settings": {"postgres": {}}}
    monkeypatch.setitem(ENVIRONMENT, "durability", kept["durability"])
    monkeypatch.setitem(ENVIRONMENT, "sink_settings", kept["sink_settings"])
    run = unfinished(keep(connectors), connectors)
    run.check({"stack": "local", "workers": 3}, connectors)
    with pytest.raises(ResultsError, match="environment stack was local, is compose; environment workers was 3, is 2;"):
        run.check({"stack": "compose", "workers": 2}, connectors)
    run.check({**ENVIRONMENT, "durability": {"kafka": {"acks": "all"}}, "sink_settings": {}}, connectors)
    with pytest.raises(ResultsError, match=r"environment durability\.kafka\.acks was all, is 1"):
        run.check({"durability": {"kafka": {"acks": "1"}}}, connectors)
    with pytest.raises(ResultsError, match=r"environment durability\.postgres\.fsync was on, is off"):
        run.check({"durability": {"kafka": {"acks": "all"}, "postgres": {"fsync": "off"}}}, connectors)


def test_a_plan_that_was_edited_is_refused(connectors: Path) -> None:
    folder = keep(connectors)
    text = folder.plan_path.read_text()
    folder.plan_path.write_text(text.replace("record_bytes: 512", "record_bytes: 1024"))
    with pytest.raises(ResultsError, match=r"plan\.yaml is not the plan that ran: it was edited, or this sinkbench"):
        unfinished(folder, connectors).check(ENVIRONMENT, connectors)
    folder.plan_path.write_text(text.replace("seed: 5", "seed: 6"))
    with pytest.raises(ResultsError, match="plan seed was 5, is 6"):
        unfinished(folder, connectors).check(ENVIRONMENT, connectors)


def test_a_secret_that_was_taken_out_is_not_compared_and_not_shown(connectors: Path) -> None:
    secret = conceal("Tr0ub4dor&3")
    file = connectors / "postgres" / "jdbc.json"
    edit(file, url=f"x://a:{secret}@host")
    folder = keep(connectors)
    edit(file, url="x://a:another@host")
    run = unfinished(folder, connectors)
    run.check(ENVIRONMENT, connectors)
    edit(file, url="x://a:another@elsewhere")
    with pytest.raises(ResultsError, match=r"config.url was x://a:\*\*\*@host, is x://a:\*\*\*@elsewhere;"):
        run.check(ENVIRONMENT, connectors)


def test_a_plan_with_a_secret_is_refused_since_that_was_not_kept(connectors: Path) -> None:
    secret = conceal("correct horse battery")
    entries = [{"pipeline": "postgres/jdbc", "overrides": {"connection.password": secret}}]
    folder = keep(connectors, 1, pipelines=entries)
    with pytest.raises(ResultsError, match=r"plan.yaml has \*\*\* where a secret was, which only the first race knew"):
        unfinished(folder, connectors).check(ENVIRONMENT, connectors)


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
        assert [each.what.split(".")[0] for each in found[:1]] == (
            [] if key == "unmeasured" else [f"environment {key}"]
        )


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


def test_a_complete_run_has_nothing_to_do_and_ends_as_it_did(
    connectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = keep(connectors, 6)
    assert main(["resume", str(folder.path.parent / "latest")]) == 0
    assert f"{folder.run}: all trials are there; the run is complete\n" in capsys.readouterr().out
    done = read_summary(folder.path)
    assert (done.complete, done.resumed, done.passed) == (True, [], True)
    before = folder.summary_path.read_bytes()
    assert main(["resume", str(folder.path)]) == 0
    said = capsys.readouterr().out
    assert f"{folder.path}: nothing to do, the run is complete\n" in said
    assert f"results: {folder.path}\n" in said
    failed = [each.model_copy(update={"passed": False}) for each in done.cells]
    folder.write_summary(done.model_copy(update={"cells": failed}))
    assert main(["resume", str(folder.path)]) == 1
    folder.write_summary(done)
    assert folder.summary_path.read_bytes() == before
