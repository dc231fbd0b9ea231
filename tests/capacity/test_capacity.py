"""What `thresholds.yaml` asks of the pipelines: one race on the stack that SINKBENCH_STACK names, then a test a figure.

With `pytest -s` the progress of the race and its table are seen, too.
"""

import subprocess
import sys
from collections.abc import Sequence

import pytest

from sinkbench.errors import UserError
from sinkbench.results import RunSummary, TrialRecord
from sinkbench.runs.store import read_summary, read_trials
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.summary.thresholds import Check, load_thresholds, outcome

try:
    PLAN, CHECKS = load_thresholds(CHECKOUT / load_settings().thresholds, CHECKOUT / "connectors")
except UserError as unusable:
    # Shown as it is, without a traceback.
    raise pytest.Collector.CollectError(str(unusable)) from None

Run = tuple[RunSummary, Sequence[TrialRecord]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run's summary, and its trials."""
    results = tmp_path_factory.mktemp("capacity")
    file = results / f"{PLAN.name}.yaml"
    file.write_text(PLAN.show(), encoding="utf-8")
    command = [sys.executable, "-m", "sinkbench", "race", str(file), "--results", str(results)]
    done = subprocess.run(command, cwd=CHECKOUT, check=False)
    # 1 says that something of the run itself failed, which the checks here look at one by one.
    assert done.returncode in (0, 1), "the race could not be run; what it printed says why"
    newest = results / "latest"
    return read_summary(newest), read_trials(newest / "trials.jsonl")


@pytest.mark.parametrize("check", CHECKS, ids=[check.name for check in CHECKS])
def test_a_figure_is_what_is_asked(check: Check, run: Run) -> None:
    found = outcome(check, *run)
    assert found.passed, found.line
