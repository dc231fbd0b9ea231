"""Arms of one run: a plan that names them, and the verdict on them by blocks that both have."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from sinkbench.analysis.intervals import ALPHA
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.results import PlanRef
from sinkbench.runs.arms import compare_arms
from sinkbench.runs.compare import RATE
from sinkbench.runs.reader import StoredRun
from sinkbench.summary.cells import summarize
from sinkbench.tables.comparison import arm_lines
from tests.support.counts import count
from tests.support.trials import run_summary, trial

HEAD = {"overrides": {"batch.size": 4096}}
MAVEN = "org.example:sink:2.1:zip"
# The machine drifts by far more than the arms differ.
DRIFT = [1000.0, 1500.0, 700.0, 2000.0, 900.0, 1200.0, 1700.0, 800.0]


def plan_of(arms: Any, pipelines: Sequence[str] = ("postgres/jdbc",), **keys: Any) -> Plan:
    return Plan.model_validate({"name": "p", "pipelines": list(pipelines), "arms": arms, **keys})


def run_of(*rates: Sequence[float]) -> StoredRun:
    """A run of as many arms with these rates, one a block."""
    plan = plan_of({f"v{number}": {"overrides": {"batch.size": number}} for number, _ in enumerate(rates)})
    cells = expand(plan, 3)
    trials = [
        trial(rate, cell, block=block, arm=cell.arm)
        for cell, each in zip(cells, rates, strict=True)
        for block, rate in enumerate(each, 1)
    ]
    summary = run_summary(*summarize(cells, trials), plan=PlanRef(name="p", sha256="0"), environment={})
    return StoredRun(summary, trials, plan.whole(), {})


def test_each_pipeline_is_measured_in_each_arm_as_it_changes_it() -> None:
    entry = {"pipeline": "postgres/jdbc", "overrides": {"batch.size": 1, "b": "2"}}
    plan = plan_of({"base": {}, "head": {**HEAD, "plugin": MAVEN}}, [entry, "elasticsearch/camel-bulk"])
    found = {cell.key: (cell.arm, dict(cell.overrides)) for cell in expand(plan, 3)}
    version = {"connector.plugin.version": "2.1"}
    assert found == {
        "postgres/jdbc base@3x1": ("base", {"batch.size": "1", "b": "2"}),
        "elasticsearch/camel-bulk base@3x1": ("base", {}),
        "postgres/jdbc head@3x1": ("head", {"batch.size": "4096", "b": "2", **version}),
        "elasticsearch/camel-bulk head@3x1": ("head", {"batch.size": "4096", **version}),
    }
    # What is stored with a run gives the same cells again.
    assert expand(Plan.model_validate(plan.whole()), 3) == expand(plan, 3)


def test_thresholds_and_faults_name_a_pipeline_as_the_plan_lists_it() -> None:
    plan = plan_of({"base": {}, "head": HEAD}, thresholds={"postgres/jdbc": {"lost": 0}})
    assert plan.bounds == {"postgres/jdbc base": {"lost": "== 0"}, "postgres/jdbc head": {"lost": "== 0"}}
    fault = {"what": "kill", "target": "worker", "pipelines": ["postgres/jdbc"]}
    load = {"mode": "faults", "sustain": {"backlog_records": 1000}, "faults": [{**fault, "at_share": 0.2}]}
    assert len(expand(plan_of({"base": {}, "head": HEAD}, **load), 3)) == 2


@pytest.mark.parametrize(
    ("arms", "why"),
    [
        ({"base": {}}, "compared with nothing"),
        ({"base": {}, "same": {}}, "base and same differ in nothing"),
        ({"base": {}, "head": {"overrides": {"tasks.max": 3}}}, "set by sinkbench"),
        ({"base": {}, "head": {"plugin": "plugin.zip"}}, "needs its version"),
        ({"base": {}, "a head": HEAD}, "is no name of an arm"),
    ],
)
def test_arms_that_cannot_be_compared_are_refused(arms: Any, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        plan_of(arms)


@pytest.mark.long
def test_a_small_difference_is_found_block_by_block_whatever_the_machine_does() -> None:
    run = run_of(DRIFT, [1.05 * rate for rate in DRIFT], DRIFT)
    by_arm = [found.by[RATE][0] for found in compare_arms(run)]
    assert [(cell.name, cell.verdict) for cell in by_arm] == [
        ("postgres/jdbc@3x1", "faster"),
        ("postgres/jdbc@3x1", "no difference found"),
    ]
    assert by_arm[0].ratio == pytest.approx(1.05)
    changed = [each.in_words for each in compare_arms(run)[0].differences]
    assert changed == ["plan pipelines postgres/jdbc overrides.batch.size was 0, is 1"]
    (line, _) = arm_lines(run)
    assert line == "postgres/jdbc@3x1, v1 against v0: 1.05 times the records/s (95 % CI 1.05-1.05), faster."


def test_too_few_blocks_give_no_verdict() -> None:
    for blocks in (3, 5):
        (found,) = compare_arms(run_of(DRIFT[:blocks], [2 * rate for rate in DRIFT[:blocks]]))
        cell = found.by[RATE][0]
        assert cell.verdict == "too few trials to tell"
        assert cell.why.startswith(f"{blocks} valid in run A and {blocks} valid in run B, 6 are needed in each")
        assert found.undecided


def test_equal_arms_are_told_apart_in_one_of_twenty_runs_at_most() -> None:
    draw, runs = np.random.default_rng(5), count(200, 20)
    claimed = 0
    for _ in range(runs):
        drift = draw.lognormal(0, 0.3, 8) * 1000
        (found,) = compare_arms(run_of(*((drift * draw.lognormal(0, 0.05, 8)).tolist() for _ in range(2))))
        claimed += found.by[RATE][0].verdict in ("faster", "slower")
    assert claimed / runs <= ALPHA + 3 * (ALPHA * (1 - ALPHA) / runs) ** 0.5
