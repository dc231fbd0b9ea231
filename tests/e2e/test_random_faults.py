"""Services that are killed, stopped or frozen at random moments of a race: it ends all the same, and its report counts
only what was whole.

FAULT_TRIALS says how many trials of each pipeline (1), FAULT_SEED at which moments, FAULT_PIPELINES which ones (two).
"""

import contextlib
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from sinkbench.errors import SinkbenchError
from sinkbench.stack.local import LocalStack
from tests.e2e.races import SOON_MISSED, a_race, left_behind
from tests.support.commands import Run
from tests.support.latest import summary_of, trials_of
from tests.support.waiting import until

TRIALS = int(os.environ.get("FAULT_TRIALS", "1"))
SEED = int(os.environ.get("FAULT_SEED", random.SystemRandom().randrange(1_000_000)))
PLAN = f"""
pipelines: [{os.environ.get("FAULT_PIPELINES", f"{SOON_MISSED}, elasticsearch/camel-bulk")}]
trials: {TRIALS}
drain: {{compiling_percent: 100, window_seconds: 4, pilot_seconds: 1, warm_up_seconds: 2, timeout_seconds: 60}}
"""
DEEDS = ("kill", "stop", "freeze")


@contextlib.contextmanager
def broken_at_random(stack: LocalStack, moments: random.Random) -> Iterator[list[str]]:
    """Breaks one service after the other, until the block ends; lists what was done, and when."""
    done: list[str] = []
    over = threading.Event()

    def break_one() -> None:
        service, deed = moments.choice([state.name for state in stack.services()]), moments.choice(DEEDS)
        # It may be dead already, or just be started again.
        with contextlib.suppress(SinkbenchError, psutil.Error):
            stack.faults.do(deed, service)
            if deed == "freeze":
                over.wait(moments.uniform(0.5, 6))
                stack.faults.do("thaw", service)
            done.append(f"{time.monotonic() - began:.1f} s: {deed} {service}")

    def go_on() -> None:
        while not over.wait(moments.uniform(3, 12)):
            break_one()

    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        breaking = pool.submit(go_on)
        try:
            yield done
        finally:
            over.set()
            breaking.result()


@pytest.mark.long
@pytest.mark.rare
def test_a_race_under_random_faults_ends_with_a_valid_report(stack: LocalStack, sinkbench: Run, tmp_path: Path) -> None:
    print(f"FAULT_SEED={SEED}")
    there = left_behind(stack)
    with a_race(tmp_path, PLAN) as race:
        # What breaks before, while ten records go through each pipeline, ends the race.
        until((tmp_path / "results" / "latest").exists, 120)
        with broken_at_random(stack, random.Random(SEED)) as done:
            output, _ = race.communicate(timeout=300 + 150 * TRIALS)
    print("\n".join(done))
    ended = race.returncode
    if "the others are taken by: sinkbench resume" in output:
        # A service could not be started again.
        ended = sinkbench("resume", "results/latest").returncode
    assert ended in (0, 1), output
    # One for each trial at the least.
    assert len(done) >= 2 * TRIALS, output
    assert "Traceback" not in output
    summary, trials = summary_of(tmp_path), trials_of(tmp_path)
    assert summary["complete"] is True
    assert len(trials) == 2 * TRIALS, output
    whole = [trial for trial in trials if not trial["invalid"]]
    for trial in trials:
        print(trial["pipeline"], trial["records_per_second"], trial["invalid"])
    for trial in whole:
        assert trial["records_per_second"], trial
        assert trial["audit"]["produced"] == trial["records"], trial
    # No rate of a trial in which something was broken is in that of its cell.
    for cell in summary["cells"]:
        rates = {trial["records_per_second"] for trial in whole if trial["cell"] == cell["cell"]}
        assert cell["records_per_second"] is None or set(cell["records_per_second"]["values"]) <= rates, cell
    assert sinkbench("report", "results/latest").returncode == 0
    stack.up(lambda line: None)
    assert all(state.state == "running" for state in stack.services())
    assert left_behind(stack) == there
