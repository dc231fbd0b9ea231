"""The commands of a stack: `up` leaves one that is raced on, `status` and `check` start nothing, and `kubernetes`."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from sinkbench.cli import stack as commands
from sinkbench.race.lock import only_race
from sinkbench.stack import kubernetes as driver
from tests.support.commands import Command


@pytest.mark.parametrize("runs", [True, False])
def test_a_stack_that_is_raced_on_is_left_as_it_is(
    runs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    started: list[object] = []
    lock, shared = tmp_path / "race.lock", SimpleNamespace(shared=True)
    raced = SimpleNamespace(lock_file=lock, start_id=lambda: "1" if runs else None, up=started.append, endpoints=shared)
    monkeypatch.setattr(commands, "the_stack", lambda choice: raced)
    with only_race(lock, tmp_path, "mine"):
        said = sinkbench.done("up")
    assert len(started) == (0 if runs else 1)
    assert [text in said for text in ("a race is running (pid ", "the stack is left as it is")] == [runs, runs]


@pytest.mark.parametrize("command", ["status", "check"])
def test_the_state_of_a_stack_shows_no_password_and_starts_nothing(
    command: str, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    state = SimpleNamespace(name="postgres", state="running", pid=7, detail="")
    addresses = {"postgres": "postgresql://me:sinkbench@h:5432/d"}
    endpoints = SimpleNamespace(shared=False, addresses=lambda: addresses)
    stack = SimpleNamespace(services=lambda: [state], endpoints=endpoints, layout=None)
    monkeypatch.setattr(commands, "running_stack", lambda choice: stack)
    assert "postgresql://me:***@h:5432/d" in sinkbench.done(command)


def test_check_asks_every_endpoint_of_a_stack_file(monkeypatch: pytest.MonkeyPatch, sinkbench: Command) -> None:
    asked: list[object] = []
    stack = SimpleNamespace(endpoints=SimpleNamespace(shared=True), up=asked.append)
    monkeypatch.setattr(commands, "running_stack", lambda choice: stack)
    assert "every endpoint answers" in sinkbench.done("check")
    assert len(asked) == 1


def test_what_is_no_overlay_is_refused_with_the_nearest(sinkbench: Command) -> None:
    assert "did you mean 'plain'?" in sinkbench.refused("kubernetes", "apply", "--overlay", "plian")


@pytest.mark.parametrize("overlay", [[], ["--overlay", "mine"]])
def test_an_overlay_of_ours_or_a_folder_of_yours_needs_kubectl_and_the_line_says_what_to_do(
    overlay: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kustomization.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no command kubectl; install it" in sinkbench.refused("kubernetes", "apply", *overlay)


def test_a_shown_namespace_is_written_for_its_owner_alone_and_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    (tmp_path / "found").mkdir()
    for name in ("stack.yaml", "postgres.password"):
        (tmp_path / "found" / name).write_text(name)
    shown = SimpleNamespace(show=lambda: tmp_path / "found" / "stack.yaml")
    monkeypatch.setattr(driver, "KubernetesStack", lambda namespace: shown)
    show = ("kubernetes", "show", "mine", "--to", str(tmp_path / "to"))
    assert f"--stack {tmp_path}/to/stack.yaml" in sinkbench.done(*show)
    modes = {each.name: oct(each.stat().st_mode)[-3:] for each in (tmp_path / "to").iterdir()}
    assert modes == {"stack.yaml": "600", "postgres.password": "600"}
    assert "name a folder that is not there yet" in sinkbench.refused(*show)
