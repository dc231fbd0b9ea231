"""A race that is killed without a word, read as it was left, and taken up again on a stack like its own."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sinkbench.stack.local import LocalStack
from tests.e2e.ownstacks import own_stack
from tests.e2e.races import ONE, a_race, left_behind, wait_for_draining
from tests.support.commands import Run, refuses, succeeded
from tests.support.latest import summary_of, trials_of


@pytest.fixture
def stack() -> Iterator[LocalStack]:
    """The stack of a plan for one worker; it is down."""
    with own_stack("stack of one worker", 2000) as usual:
        yield LocalStack(usual.settings.with_workers(1))


@pytest.mark.long
def test_a_race_that_was_killed_is_read_and_taken_up_where_it_was(
    stack: LocalStack, sinkbench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_race(tmp_path, f"workers: 1\nmultiples: [3]\n{ONE}") as race:
        # The second of two trials.
        wait_for_draining(stack, "-002")
        os.killpg(race.pid, signal.SIGKILL)
        output, _ = race.communicate(timeout=60)
    assert race.returncode == -signal.SIGKILL, output
    assert left_behind(stack) != []
    (first,) = trials_of(tmp_path, pilots=True)
    killed = summary_of(tmp_path)
    assert (killed["complete"], killed["resumed"], killed["cells"][0]["trials"]) == (False, [], 1)
    assert succeeded(sinkbench("runs")).stdout.splitlines()[2].split()[-3:] == ["1", "no", "no"]
    assert sinkbench("report", "results/latest").returncode == 0

    # Otherwise the next race would stop what the killed one has started.
    assert sinkbench("up").returncode == 0
    status = sinkbench("status")
    assert (status.returncode, "connect-1" in status.stdout, "connect-2" in status.stdout) == (0, True, False)

    with monkeypatch.context() as patch:
        patch.setenv("SINKBENCH_WORKERS", "2")
        refused = refuses(sinkbench("resume", "results/latest"))
    assert "cannot be resumed" in refused.stderr
    assert "environment workers was 1, is 2" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1

    resumed = succeeded(sinkbench("resume", "results/latest"))
    assert "removed what an earlier run left behind" in resumed.stdout
    assert left_behind(stack) == []
    summary, trials = summary_of(tmp_path), trials_of(tmp_path, pilots=True)
    (cell,) = summary["cells"]
    assert summary["complete"] is True
    assert len(summary["resumed"]) == 1
    assert f"resumed {summary['resumed'][0]}" in resumed.stdout
    assert summary["environment"] == killed["environment"]
    # A trial that was too short is taken again, and stays beside that which counts.
    counted = [trial for trial in trials if not trial["pilot"]]
    assert [trial["block"] for trial in counted] == [1, 2]
    assert (cell["trials"], cell["verdict"]) == (2, "ok"), cell
    assert cell["audit"]["produced"] == cell["audit"]["stored"] == sum(trial["records"] for trial in counted)
    assert trials[0] == first
    assert len({trial["trial"] for trial in trials}) == len(trials)
    for trial in trials:
        assert len((tmp_path / "results" / "latest" / trial["samples"]).read_text().splitlines()) > 4

    assert "nothing to do, the run is complete" in succeeded(sinkbench("resume", "results/latest")).stdout
    assert summary_of(tmp_path) == summary
