"""The command `replicate`, on stored runs and without any."""

import json
from pathlib import Path

import pytest

from sinkbench.errors import Interrupted, StackError
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan, kafka_loads
from sinkbench.race import session
from sinkbench.results import PlanRef
from sinkbench.runs.store import RunFolder, read_trials
from sinkbench.settings import CHECKOUT
from sinkbench.stack import Stack
from sinkbench.summary.cells import summarize
from tests.support.commands import Command
from tests.support.trials import connectors_in, run_summary, trial

MEASURED = "postgres/jdbc / elasticsearch/camel-index: 20 (19.9-20), must be at least 10"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A run of the plan quick in which camel-index has 1,000 records/s, and jdbc 20 times as many."""
    rates = {"elasticsearch/camel-index": 1_000, "postgres/jdbc": 20_000}
    plan = Plan.model_validate({"name": "quick", "pipelines": list(rates), "seed": 1})
    folder = RunFolder.create(tmp_path / "results", plan, connectors_in(tmp_path, *rates))
    cells = expand(plan, 3)
    for cell in cells:
        for block in (1, 2, 3):
            folder.append_trial(trial(rates[cell.label] + block, cell, trial=f"{cell.sink}{block}", block=block))
    summed = summarize(cells, read_trials(folder.trials_path))
    folder.write_summary(run_summary(*summed, run=folder.run, plan=PlanRef(name="quick", sha256="0")))
    return tmp_path / "results"


def test_a_claim_is_set_against_the_newest_run_of_its_plan(results: Path, sinkbench: Command) -> None:
    text = sinkbench.done("replicate", "part8", "--results", results)
    assert max(map(len, text.splitlines())) <= 100
    assert "  sinkbench race connections    # 2 claims, about 1 min\n" in text
    found = json.loads(sinkbench.done("replicate", "part8", "--json", "--results", results))
    (ratio,) = (each for each in found["claims"] if each["number"] == 21)
    assert (ratio["verdict"], ratio["measured"], ratio["run"][-6:]) == ("replicated", [MEASURED], "-quick")
    (bulk,) = (each for each in found["claims"] if each["number"] == 23)
    assert bulk["why"] == "the run has no cell elasticsearch/camel-bulk, tasks 3"
    assert sum(found["totals"].values()) == len(found["claims"]) == 26


def test_a_run_of_the_same_name_whose_pipelines_are_configured_otherwise_counts_for_nothing(
    results: Path, sinkbench: Command
) -> None:
    (path,) = results.glob("2*/summary.json")
    path.write_text(path.read_text().replace('"overrides": {}', '"overrides": {"batch.size": "1"}', 1))
    claim = "part8-21-postgres-against-elasticsearch"
    assert "no run of plan quick" in sinkbench.done("replicate", claim, "--results", results)


def test_an_interrupt_ends_all_races_also_where_the_stack_cannot_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    taken: list[str] = []

    def run_plan(_: Stack, plan: Plan, *__: object, keep: bool) -> None:
        taken.append(plan.name)
        raise Interrupted

    def stop_kept(_: Stack) -> None:
        raise StackError("it hangs")

    monkeypatch.setattr(session, "run_plan", run_plan)
    monkeypatch.setattr(session, "stop_kept", stop_kept)
    done = sinkbench("replicate", "--quick", "--race", "--results", tmp_path / "new")
    assert (done.code, len(taken), "it hangs\n" in done.err) == (130, 1, True)


def test_the_page_has_every_claim_with_its_source_and_verdict(
    results: Path, tmp_path: Path, sinkbench: Command
) -> None:
    page = tmp_path / "claims.html"
    assert sinkbench.done("replicate", "--results", results, "--html", page) == f"{page}\n"
    text = page.read_text()
    names = {file.stem for file in (CHECKOUT / "claims").glob("*.yaml")}
    assert len(names) == 65
    assert all(f'<th scope="row">{name}</th>' in text or f">{name}<" in text for name in names)
    assert [each for each in (MEASURED, "replicated") if each not in text] == []
    refused = sinkbench.refused("replicate", "--results", results, "--html", tmp_path / "nowhere" / "claims.html")
    assert "nowhere" in refused


def test_without_a_run_the_commands_that_would_decide_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    text = sinkbench.done("replicate", "part8-21-postgres-against-elasticsearch")
    assert "no run of plan quick" in text
    assert text.endswith("Runs that are missing:\n  sinkbench race quick    # 1 claim, about 6 min\n")
    sinkbench.refused("replicate", "--results", "nowhere")


def test_the_quick_races_are_of_the_core_of_each_article(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    taken: list[tuple[str, int, int]] = []

    def run_plan(_: Stack, plan: Plan, *__: object, keep: bool) -> None:
        taken.append((plan.name, len(plan.pipelines), len(kafka_loads(plan))))

    monkeypatch.setattr(session, "run_plan", run_plan)
    done = sinkbench("replicate", "--quick", "--race", "--results", tmp_path / "new")
    assert sorted(taken) == [("fan-out", 1, 4), ("kafka-alone", 1, 4), ("quick", 2, 0)]
    assert "4 claims: " in done.out
    assert "rules: is no core of an article; leave out --quick" in sinkbench.refused("replicate", "rules", "--quick")


def test_an_unknown_name_ends_with_exit_code_2(sinkbench: Command) -> None:
    assert sinkbench.refused("replicate", "--minutes", 5) == "sinkbench: --minutes: is for the races; add --race\n"
    said = "sinkbench: part9: is no claim and no article; did you mean 'part8'?\n"
    assert sinkbench.refused("replicate", "part9") == said


def test_the_races_that_are_missing_are_taken_the_most_telling_ones_first(
    results: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    taken: list[tuple[str, int, int]] = []

    def run_plan(stack: Stack, plan: Plan, *_: object, keep: bool) -> None:
        assert keep
        taken.append((plan.name, 0 if stack.layout is None else len(stack.layout.kafka.nodes), stack.workers))
        if plan.name == "shards":
            raise StackError("no room")

    stopped: list[int] = []
    monkeypatch.setattr(session, "run_plan", run_plan)
    monkeypatch.setattr(session, "stop_kept", lambda stack: stopped.append(stack.workers))
    asked = ("replicate", "part8-16-shards", "openshift", "part8-21-postgres-against-elasticsearch")
    done = sinkbench(*asked, "--results", results, "--race")
    assert taken == [("kafka-alone", 3, 1), ("shards", 1, 3), ("brokers", 5, 1)]
    assert stopped == [1, 3, 1]
    assert "race: SINKBENCH_TOPOLOGY=brokers sinkbench race kafka-alone    # 6 claims\n" in done.err
    assert "sinkbench race shards: no room; its claims stay open\n" in done.err
    assert "\n  sinkbench race shards    # 1 claim, about " in done.out
    assert "left out, it takes " in sinkbench(*asked, "--results", results, "--race", "--minutes", 1).err
    monkeypatch.setenv("SINKBENCH_STACK", "compose")
    done = sinkbench("replicate", "openshift", "--race")
    assert "needs topology brokers, of the local stack" in done.err
    assert (done.code, done.err.splitlines()[-1][:59]) == (
        2,
        "sinkbench: --race: none of the missing races was taken; wha",
    )
    monkeypatch.delenv("SINKBENCH_STACK")
    assert len(taken) == 3
    # The first results of all.
    del stopped[:], taken[:]
    two = ("part8-16-shards", "part8-24-refresh")
    done = sinkbench("replicate", *two, "--race", "--results", results / "new")
    assert (done.code, taken) == (0, [("shards", 1, 3), ("refresh", 1, 3)])
    # Once both have been raced.
    assert stopped == [3, 3]


def test_races_have_as_many_trials_as_the_time_gives_all_of_them_and_three_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    taken: list[tuple[str, int]] = []
    monkeypatch.setattr(session, "run_plan", lambda _, plan, *__, keep: taken.append((plan.name, plan.trials)))
    monkeypatch.setattr(session, "stop_kept", lambda _: None)
    for minutes in (90, 8, 4):
        asked = ("part8-16-shards", "part8-24-refresh", "--race", "--minutes", minutes)
        sinkbench("replicate", *asked, "--results", tmp_path / str(minutes))
    assert taken == [("shards", 6), ("refresh", 6), ("shards", 3), ("refresh", 3), ("shards", 3)]
