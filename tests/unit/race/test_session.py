"""A session starts what is down and stops what it started, however it ends; without services."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from sinkbench.errors import Interrupted, StackError
from sinkbench.plan.plan import Plan
from sinkbench.race import preparation, session
from sinkbench.race.lock import StarterNote, only_race
from sinkbench.race.resume import load_unfinished
from sinkbench.race.session import resume_run, run_plan, stop_kept
from sinkbench.settings import CHECKOUT
from sinkbench.stack import Usage
from sinkbench.stack.local import VARIABLES
from tests.support.fakecluster import FakeCluster
from tests.support.present import present
from tests.support.trials import plan_of

PLAN = plan_of(trials=2, seed=1)


class FakeStack:
    """Starts and stops nothing, and says what was asked of it."""

    name = "fake"
    workers = 3
    layout = None
    variables = VARIABLES
    second: "FakeStack"

    def __init__(self, folder: Path, *, runs: bool = False) -> None:
        self.lock_file = folder / "race.lock"
        self.endpoints = SimpleNamespace(shared=False, stack_file=None, sinks={}, connect_variables={})
        self.calls: list[str] = []
        self.runs, self.broken = runs, False
        self.own_container: str | None = None
        self.id = "7 100.00"

    def start_id(self) -> str | None:
        return self.id if self.runs else None

    def up(self, say: Any) -> None:
        if self.broken:
            raise StackError("kafka: did not start")
        self.calls.append("up")
        self.runs = True

    def sibling(self, number: int, variables: Any) -> "FakeStack":
        assert (number, variables) == (1, {"KAFKA_HEAP": "1g"})
        return self.second

    def down(self) -> None:
        self.calls.append("down")

    usage = Usage


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """The cluster that every session gets; what is asked of services before a race is left out."""
    fake = FakeCluster(PLAN)
    fake.close = lambda: fake.calls.append("close")  # type: ignore[attr-defined]
    monkeypatch.setattr(session, "Cluster", lambda *arguments: fake)
    monkeypatch.setattr(session, "describe", lambda *arguments: {"stack": "fake", "workers": 3})
    monkeypatch.setattr(preparation, "create_named_targets", lambda stack: stack.calls.append("offer"))
    monkeypatch.setattr(session, "machine", dict)
    monkeypatch.setattr(session, "commit", lambda folder: None)
    # A race on this checkout may go on meanwhile.
    monkeypatch.setattr(session, "only_race", lambda lock, checkout, *rest: only_race(lock, lock.parent, *rest))
    monkeypatch.setattr(preparation, "preflight", lambda *arguments: {})
    monkeypatch.setattr(preparation, "validate_configs", lambda *arguments: {})
    for name, found in {"sweep": ["topic tides_x"], "check_alone": None, "check_pipelines": None}.items():
        monkeypatch.setattr(session, name, lambda *arguments, found=found: found)
    return fake


def run(stack: FakeStack, folder: Path, plan: Plan = PLAN, *, keep: bool = False) -> tuple[Any, str]:
    console = Console(file=io.StringIO(), width=200)
    try:
        return run_plan(stack, plan, folder / "results", console, keep=keep), console.file.getvalue()  # type: ignore[arg-type, attr-defined]
    except BaseException as ended:
        ended.add_note(console.file.getvalue())  # type: ignore[attr-defined]
        raise


def test_a_stack_that_is_down_is_started_and_stopped(cluster: FakeCluster, tmp_path: Path) -> None:
    stack = FakeStack(tmp_path)
    (folder, summary), output = run(stack, tmp_path)
    assert stack.calls == ["up", "down"]
    assert cluster.calls[-1] == "close"
    assert (summary.complete, summary.environment["stack"]) == (True, "fake")
    assert folder.summary_path.exists()
    assert 0 < output.index(f"run {folder.run}; Ctrl-C keeps") < output.index("[1 of ")
    assert "removed what an earlier run left behind: topic tides_x" in output
    assert output.rstrip().endswith("stopping the stack")


def test_a_stack_that_ran_before_goes_on_and_can_be_used_manually(cluster: FakeCluster, tmp_path: Path) -> None:
    stack = FakeStack(tmp_path, runs=True)
    _, output = run(stack, tmp_path)
    assert stack.calls == ["up", "offer"]
    assert output.rstrip().endswith("the stack was up before and stays up; `sinkbench down` stops it")


def test_a_second_stack_is_started_for_variables_and_removed(cluster: FakeCluster, tmp_path: Path) -> None:
    stack = FakeStack(tmp_path)
    second = stack.second = FakeStack(tmp_path)
    varied = plan_of(trials=1, arms={"small": {"variables": {"KAFKA_HEAP": "1g"}}, "usual": {}})
    (_, summary), output = run(stack, tmp_path, varied)
    assert (stack.calls, second.calls) == (["up", "down"], ["up", "down"])
    assert "starting a stack with KAFKA_HEAP=1g" in output
    assert summary.environment["workers"] == 3
    stack = FakeStack(tmp_path)
    second = stack.second = FakeStack(tmp_path)
    second.broken = True
    with pytest.raises(StackError):
        run(stack, tmp_path, varied)
    assert (stack.calls, second.calls) == (["up", "down"], ["down"])


def killed(folder: Path) -> FakeStack:
    """A stack that is up since a race has started it that was killed."""
    stack = FakeStack(folder, runs=True)
    StarterNote(stack).write("20261121T034800Z-quick")  # type: ignore[arg-type]
    return stack


def test_a_stack_that_a_killed_race_has_started_is_stopped_by_the_next(cluster: FakeCluster, tmp_path: Path) -> None:
    stack = killed(tmp_path)
    _, output = run(stack, tmp_path)
    assert stack.calls == ["up", "down"]
    assert "started by the race of 20261121T034800Z-quick, which was killed; it is stopped in the end" in output
    assert StarterNote(stack).run() is None  # type: ignore[arg-type]
    for name, value in (("id", "8 200.00"), ("own_container", "controller")):
        # It was started anew, or holds the race.
        stack = killed(tmp_path)
        setattr(stack, name, value)
        run(stack, tmp_path)
        assert stack.calls == ["up", "offer"]


def test_a_stack_that_is_kept_is_started_once_and_stopped_by_whoever_keeps_it(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    stack = FakeStack(tmp_path)
    for _ in range(2):
        _, output = run(stack, tmp_path, keep=True)
    assert stack.calls == ["up", "up"]
    assert "killed" not in output
    stop_kept(stack)  # type: ignore[arg-type]
    stop_kept(stack)  # type: ignore[arg-type]
    assert stack.calls == ["up", "up", "down"]
    # One that was up before stays so.
    stack = FakeStack(tmp_path, runs=True)
    run(stack, tmp_path, keep=True)
    stop_kept(stack)  # type: ignore[arg-type]
    assert stack.calls == ["up", "offer"]


def test_what_was_started_is_stopped_when_a_service_cannot_be_started(cluster: FakeCluster, tmp_path: Path) -> None:
    stack = FakeStack(tmp_path)
    stack.broken = True
    with pytest.raises(StackError):
        run(stack, tmp_path)
    assert stack.calls == ["down"]
    assert not any((tmp_path / "results").glob("*/summary.json"))


def test_an_interrupted_race_says_how_to_go_on_and_can_be_resumed(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.refuses = Interrupted(130)
    stack = FakeStack(tmp_path)
    with pytest.raises(Interrupted) as ended:
        run(stack, tmp_path)
    assert stack.calls == ["up", "down"]
    (note,) = ended.value.__notes__
    assert "interrupted; the finished trials are in" in note
    assert "the others are taken by: sinkbench resume " in note
    cluster.refuses = None
    (folder,) = (tmp_path / "results").glob("2*")
    unfinished = present(load_unfinished(folder, CHECKOUT / "connectors"))
    _, summary = resume_run(FakeStack(tmp_path), unfinished, Console(file=io.StringIO()))  # type: ignore[arg-type]
    assert (summary.complete, len(summary.resumed), summary.cells[0].trials) == (True, 1, 2)
