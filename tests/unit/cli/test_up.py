"""The commands of a stack: `up` during a race leaves it as it is, `status` and `check` start nothing."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from sinkbench.cli import stack as commands
from sinkbench.race.lock import only_race


@pytest.mark.parametrize(("runs", "starts"), [(True, 0), (False, 1)])
def test_a_stack_that_is_raced_on_is_left_as_it_is(
    runs: bool, starts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    raced = SimpleNamespace(
        lock_file=tmp_path / "race.lock",
        start_id=lambda: "1" if runs else None,
        up=started.append,
        endpoints=SimpleNamespace(shared=True),
    )
    monkeypatch.setattr(commands, "the_stack", lambda choice: raced)
    with only_race(raced.lock_file, tmp_path, "mine"):
        done = CliRunner().invoke(commands.app, ["up"])
    assert done.exit_code == 0, done.output
    assert len(started) == starts
    assert ("a race is running (pid " in done.output) is runs
    assert ("the stack is left as it is" in done.output) is runs


@pytest.mark.parametrize("command", ["status", "check"])
def test_the_state_of_a_stack_shows_no_password_and_starts_nothing(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = SimpleNamespace(name="postgres", state="running", pid=7, detail="")
    addresses = {"postgres": "postgresql://me:sinkbench@h:5432/d"}
    stack = SimpleNamespace(
        services=lambda: [state], endpoints=SimpleNamespace(shared=False, addresses=lambda: addresses), layout=None
    )
    monkeypatch.setattr(commands, "running_stack", lambda choice: stack)
    done = CliRunner().invoke(commands.app, [command])
    assert done.exit_code == 0, done.output
    assert "postgresql://me:***@h:5432/d" in done.output


def test_check_asks_every_endpoint_of_a_stack_file(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    stack = SimpleNamespace(endpoints=SimpleNamespace(shared=True), up=asked.append)
    monkeypatch.setattr(commands, "running_stack", lambda choice: stack)
    done = CliRunner().invoke(commands.app, ["check"])
    assert (done.exit_code, len(asked)) == (0, 1)
    assert "every endpoint answers" in done.output
