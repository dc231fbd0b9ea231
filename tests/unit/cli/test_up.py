"""`sinkbench up` while a race runs: what is broken on purpose stays so."""

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
