"""A copy of the plan with thresholds, checked as a user does, on a stack that is up."""

import subprocess
import sys
from pathlib import Path

import pytest

from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack

# No interval is asked for here.
LESS = {
    "trials: 5": "trials: 1",
    "pilot_seconds: 3": "pilot_seconds: 1.5",
    "warm_up_seconds: 60": "warm_up_seconds: 6",
    "window_seconds: 6": "window_seconds: 4",
}


@pytest.mark.long
@pytest.mark.rare
def test_what_the_shipped_thresholds_ask_holds(
    stack: LocalStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (CHECKOUT / "tests" / "capacity" / "plan.yaml").read_text()
    for usual, less in LESS.items():
        text = text.replace(usual, less)
    (tmp_path / "plan.yaml").write_text(text)
    monkeypatch.setenv("SINKBENCH_THRESHOLDS", str(tmp_path / "plan.yaml"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/capacity", "-s"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
