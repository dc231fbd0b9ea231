"""Thresholds: which files are refused, and what a check says of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from test_summarize import trial

from sinkbench.cells import Cell
from sinkbench.errors import PlanError
from sinkbench.latency import latency_of
from sinkbench.limits.efficiency import with_limits
from sinkbench.results import Audit, Connections, Limit, PlanRef, RunSummary, TrialRecord
from sinkbench.settings import CHECKOUT
from sinkbench.summarize import summarize
from sinkbench.thresholds import Bound, Check, Outcome, RatioBound, load_thresholds, outcome

FAST = Cell("postgres/jdbc", "postgres/jdbc", "postgres", 1, 3)
SLOW = Cell("elasticsearch/camel-bulk", "elasticsearch/camel-bulk", "elasticsearch", 1, 3)
PLAN = "pipelines: [postgres/jdbc, elasticsearch/camel-bulk]\n"


@pytest.fixture
def connectors(tmp_path: Path) -> Path:
    for name in ("postgres/jdbc", "elasticsearch/camel-bulk"):
        path = tmp_path / "connectors" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    return tmp_path / "connectors"


def refusal(connectors: Path, text: str, plan: str = PLAN) -> str:
    folder = connectors.parent
    (folder / "plan.yaml").write_text(plan)
    (folder / "mine.yaml").write_text(text)
    with pytest.raises(PlanError) as refused:
        load_thresholds(folder / "mine.yaml", connectors)
    return str(refused.value).replace(f"{folder}/", "")


def trials(rates: Sequence[float] = (9_000, 10_000, 11_000, 10_500, 9_500)) -> list[TrialRecord]:
    """The fast cell at these rates, one a block, and the slow one at half of each."""
    made = []
    for block, rate in enumerate(rates, start=1):
        fields = {"block": block, "connections": Connections(clients_peak=144, server_peak=18)}
        made.append(trial(rate, FAST, latency_ms=latency_of([5_000.0] * 999), **fields))
        made.append(trial(rate / 2, SLOW, **fields))
    return made


def check(figure: str, bound: Bound, taken: Sequence[TrialRecord] | None = None, cell: str = FAST.label) -> Outcome:
    taken = trials() if taken is None else taken
    plan = PlanRef(name="mine", sha256="0", seed=1, trials=5)
    limits = [Limit(sink="postgres", way="COPY", records_per_second=40_000, connections=4, batch=512)]
    cells = with_limits(summarize([FAST, SLOW], taken), limits)
    summary = RunSummary(run="r", complete=True, plan=plan, cells=cells, limits=limits)
    return outcome(Check(cell, figure, bound), summary, taken)


def test_the_file_that_comes_with_sinkbench_asks_only_what_holds_on_any_machine() -> None:
    plan, checks = load_thresholds(CHECKOUT / "tests" / "capacity" / "thresholds.yaml", CHECKOUT / "connectors")
    assert {each.figure for each in checks} == {"ratio", "lost", "duplicates", "connections"}
    assert plan.trials >= 5
    assert len({each.name for each in checks}) == len(checks)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cells: [{cell: postgres/jdbc, lost: {at_most: 0}}]", "mine.yaml:1: file of thresholds has no 'plan'"),
        ("plan: plan.yaml\ncells: []", "mine.yaml:2: cells must not be empty"),
        (
            "plan: plan.yaml\ncells: [{cell: postgres/jdbcs, lost: {at_most: 0}}]",
            "mine.yaml:2: the plan plan.yaml has no pipeline 'postgres/jdbcs'; did you mean 'postgres/jdbc'?",
        ),
        (
            "plan: plan.yaml\ncells:\n- cell: postgres/jdbc\n  ratio: {to: mysql, at_least: 1}",
            "mine.yaml:4: the plan plan.yaml has no pipeline 'mysql'",
        ),
        (
            "plan: plan.yaml\ncells: [{cell: postgres/jdbc, efficency: {at_least: 1}}]",
            "mine.yaml:2: unknown key 'efficency' in cells; did you mean 'efficiency'?",
        ),
        (
            "plan: plan.yaml\ncells:\n- cell: postgres/jdbc\n  efficiency: {at_least: 0.6}",
            "mine.yaml:4: an efficiency needs the sink's limit; set limits: true in plan.yaml",
        ),
        ("plan: plan.yaml\ncells: [{cell: postgres/jdbc, lost: {}}]", "mine.yaml:2: lost asks nothing; give it"),
        ("plan: none.yaml\ncells: [{cell: postgres/jdbc, lost: {at_most: 0}}]", "none.yaml: there is no such plan"),
    ],
)
def test_a_mistake_is_told_with_its_line(connectors: Path, text: str, said: str) -> None:
    refused = refusal(connectors, text)
    assert said in refused
    assert "\n" not in refused


def test_a_ratio_is_told_with_its_interval_and_what_was_asked() -> None:
    found = check("ratio", RatioBound(to=SLOW.label, at_least=1.5))
    assert found == Outcome(
        True,
        "postgres/jdbc: ratio to elasticsearch/camel-bulk: measured 2 (2 to 2, 95 % of 5 blocks), asked at least 1.5",
    )
    assert not check("ratio", RatioBound(to=SLOW.label, at_least=2.5)).passed


def test_a_rate_whose_interval_holds_the_threshold_says_that_more_trials_may_decide() -> None:
    found = check("records_per_second", Bound(at_least=10_200))
    assert not found.passed
    assert found.line == (
        "postgres/jdbc: records_per_second: measured 10,000 (9,000 to 11,000, 95 % of 5 blocks; the interval holds the"
        " threshold, so more trials may decide otherwise), asked at least 10,200"
    )
    assert "decide" not in check("records_per_second", Bound(at_least=20_000)).line


def test_too_few_trials_for_an_interval_show_their_span() -> None:
    found = check("records_per_second", Bound(at_least=20_000), trials([9_000, 10_000]))
    assert "measured 9,500 (lowest trial 9,000, highest 10,000; fewer than 5 have no interval)" in found.line


@pytest.mark.parametrize(
    ("figure", "bound", "passed"),
    [
        ("efficiency", Bound(at_least=0.25), True),
        ("efficiency", Bound(at_least=0.26), False),
        ("p50_ms", Bound(at_most=5.1), True),
        ("p99_ms", Bound(at_most=4), False),
        ("connections", Bound(at_most=18), True),
        ("connections", Bound(at_most=17), False),
        ("lost", Bound(at_most=0), True),
        ("duplicates", Bound(at_least=0, at_most=0), True),
    ],
)
def test_each_figure_is_compared_with_its_bound(figure: str, bound: Bound, passed: bool) -> None:
    found = check(figure, bound)
    assert found.passed is passed, found.line


def test_a_lost_record_fails_also_where_its_trial_is_invalid() -> None:
    lossy = Audit(produced=100, stored=97, lost=3, duplicates=0)
    taken = [each.model_copy(update={"audit": lossy, "invalid": ["x"]}) for each in trials()]
    assert check("lost", Bound(at_most=0), taken).line == "postgres/jdbc: lost: measured 15, asked at most 0"


@pytest.mark.parametrize("figure", ["records_per_second", "efficiency", "ratio"])
def test_what_was_not_measured_does_not_hold_and_says_why(figure: str) -> None:
    taken = [each.model_copy(update={"invalid": ["the machine slept"]}) for each in trials()]
    bound = RatioBound(to=SLOW.label, at_least=0) if figure == "ratio" else Bound(at_least=0)
    found = check(figure, bound, taken)
    assert not found.passed
    assert "not measured, asked at least 0; the cell's verdict: invalid: the machine slept" in found.line


def test_a_cell_that_the_run_has_not_is_told_with_those_that_it_has() -> None:
    found = check("lost", Bound(at_most=0), cell="postgres/jdbc@6x1")
    assert not found.passed
    assert "name one of postgres/jdbc@3x1, elasticsearch/camel-bulk@3x1" in found.line
