"""A race of twelve trials in which any step may fail: it ends, says what of it holds, and can be reported."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sinkbench.cli.main import main
from sinkbench.errors import ConnectError, ReasonCode, ServiceError, ServiceTimeout, TrialFailed
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.race.journal import Journal
from sinkbench.race.race import Race
from sinkbench.runs.reader import load_run
from sinkbench.runs.store import RunFolder
from sinkbench.settings import CHECKOUT
from tests.support.counts import count
from tests.support.fakecluster import FakeCluster, Quiet

PLAN = {"name": "faulted", "pipelines": ["postgres/jdbc", "elasticsearch/camel-bulk"], "trials": 6, "seed": 1}
STEPS = ("create_target", "load", "start_connector", "status", "stop_connector", "consumed", "audit", "content")
FAILURES = (
    ServiceError("it does not answer <b>"),
    ServiceTimeout("no answer within 5 s"),
    ConnectError("409: a rebalance goes on"),
    TrialFailed("not all records were acknowledged", ReasonCode.LOAD_FAILED),
)
FAULTED = 0.3


class Faulted(FakeCluster):
    """Three trials of ten have a fault: a step fails, or the sink loses, doubles, stalls, or dies."""

    def __init__(self, plan: Plan, random: Random) -> None:
        self.random = random
        self.fails: dict[str, Exception] = {}
        super().__init__(plan)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in STEPS or name not in (fails := super().__getattribute__("fails")):
            return found

        def fail(*arguments: Any, **more: Any) -> Any:
            # Pilots come before the trials; what fails there ends the race, with a line that says so.
            if any("pilot" in str(each) for each in arguments):
                return found(*arguments, **more)
            raise fails.pop(name)

        return fail

    def check_disk(self, records: int, rows_before: int = 0, form: str = "document") -> None:
        """The first step of a trial decides what becomes of it."""
        super().check_disk(records, rows_before, form)
        self.fails.clear()
        self.lost = self.twice = self.failed = 0
        self.dies = self.frozen = None
        self.silent = False
        if self.random.random() < FAULTED:
            what = self.random.randrange(7)
            if what == 0:
                self.lost = self.random.randint(1, records)
            elif what == 1:
                self.twice = 1
            elif what == 2:
                self.failed = 1
            elif what == 3:
                self.dies = self.random.uniform(0, 20)
            elif what == 4:
                self.frozen = (self.random.uniform(0, 10), self.random.uniform(10, 90))
            else:
                self.fails[self.random.choice(STEPS)] = self.random.choice(FAILURES)


@pytest.mark.timeout(120)
@settings(max_examples=count(5, 3), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random=st.randoms(use_true_random=True))
def test_a_race_under_random_faults_ends_with_a_report(
    random: Random, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Faulted(Plan.model_validate(PLAN), random)
    folder = RunFolder.create(tmp_path / "results", cluster.plan, CHECKOUT / "connectors")
    summary = Race(cluster, Journal(folder, cluster.plan, expand(cluster.plan, 3), {}), Quiet()).run()
    kept = load_run(folder.path)
    assert kept.summary == summary
    assert summary.complete
    assert set(Counter(trial.cell for trial in kept.trials if not trial.pilot).values()) == {6}
    # What is not valid says why, and what is valid has lost nothing.
    for trial in kept.trials:
        assert trial.reasons or (trial.audit is not None and trial.audit.lost == 0), trial
    assert main(["report", str(folder.path)]) == 0
    assert main(["export", str(folder.path), "--format", "csv"]) == 0
    assert "Traceback" not in "".join(capsys.readouterr())
