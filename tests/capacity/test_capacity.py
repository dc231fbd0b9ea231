"""What the thresholds of a plan ask: one race on the stack that SINKBENCH_STACK names, then a test a threshold.

With `pytest -s` the progress of the race and its table are seen, too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from sinkbench.errors import EXIT_CHECK_FAILED, EXIT_DONE, EXIT_INCONCLUSIVE, UserError
from sinkbench.plan.plan import load_plan
from sinkbench.runs.store import read_summary
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.summary.thresholds import Outcome, outcomes

try:
    FILE = CHECKOUT / load_settings().thresholds
    PLAN = load_plan(FILE, CHECKOUT / "connectors")
except UserError as unusable:
    # Shown as it is, without a traceback.
    raise pytest.Collector.CollectError(str(unusable)) from None

ASKED = [(label, figure, bound) for label, bounds in (PLAN.bounds or {}).items() for figure, bound in bounds.items()]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Outcome]:
    results = tmp_path_factory.mktemp("capacity")
    command = [sys.executable, "-m", "sinkbench", "race", str(FILE), "--results", str(results)]
    done = subprocess.run(command, cwd=CHECKOUT, check=False)
    # Whatever of the run failed, the thresholds are looked at one by one.
    ran = done.returncode in (EXIT_DONE, EXIT_CHECK_FAILED, EXIT_INCONCLUSIVE)
    assert ran, "the race could not be run; what it printed says why"
    return outcomes(read_summary(results / "latest"))


@pytest.mark.parametrize(("label", "figure", "bound"), ASKED, ids=[" ".join(asked) for asked in ASKED])
def test_a_threshold_is_met(label: str, figure: str, bound: str, found: Sequence[Outcome]) -> None:
    lines = [each.line for each in found if (each.label, each.figure) == (label, figure) and each.passed is not True]
    assert not lines, "\n".join(lines)
