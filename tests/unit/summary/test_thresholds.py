"""Thresholds: which files are refused, and what a check says of a run."""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import pytest

from sinkbench.analysis.latency import latency_of
from sinkbench.analysis.limits import with_block
from sinkbench.errors import PlanError
from sinkbench.results import Audit, Connections, Limit, LimitInBlock, TrialRecord
from sinkbench.settings import CHECKOUT
from sinkbench.summary.cells import summarize
from sinkbench.summary.thresholds import Bound, Check, Outcome, RatioBound, load_thresholds, outcome
from tests.support.reasons import because
from tests.support.trials import JDBC as FAST
from tests.support.trials import OTHER as SLOW
from tests.support.trials import connectors_in, run_summary, trial

PLAN = "pipelines: [postgres/jdbc, elasticsearch/camel-bulk]\n"


@pytest.fixture
def connectors(tmp_path: Path) -> Path:
    return connectors_in(tmp_path, "postgres/jdbc", "elasticsearch/camel-bulk")


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


LIMIT = Limit(sink="postgres", way="COPY", records_per_second=40_000, connections=4, batch=512)


def check(
    figure: str, bound: Bound, taken: Sequence[TrialRecord] | None = None, cell: str = FAST.label, limit: Limit = LIMIT
) -> Outcome:
    taken = trials() if taken is None else taken
    limits = [limit]
    cells = summarize([FAST, SLOW], taken, limits=limits)
    summary = run_summary(*cells, limits=limits)
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
            "plan: plan.yaml\ncells: [{cell: postgres/jdbc, efficency: {at_least: 1}}]",
            "mine.yaml:2: unknown key 'efficency' in cells; did you mean 'efficiency'?",
        ),
        (
            "plan: plan.yaml\ncells:\n- cell: postgres/jdbc\n  efficiency: {at_least: 0.6}",
            "mine.yaml:4: an efficiency needs the sink's limit; set limits: true in plan.yaml",
        ),
        (
            "plan: plan.yaml\ncells:\n- cell: postgres/jdbc\n  cost_per_million: {at_most: 1}",
            "mine.yaml:4: a cost needs prices; give plan.yaml the key prices",
        ),
        ("plan: plan.yaml\ncells: [{cell: postgres/jdbc, lost: {}}]", "mine.yaml:2: lost asks nothing; give it"),
        ("plan: none.yaml\ncells: [{cell: postgres/jdbc, lost: {at_most: 0}}]", "none.yaml: there is no such plan"),
    ],
)
def test_a_mistake_is_named_with_its_line(connectors: Path, text: str, said: str) -> None:
    refused = refusal(connectors, text)
    assert said in refused
    assert "\n" not in refused


def test_a_ratio_is_shown_with_its_interval_and_what_was_asked() -> None:
    found = check("ratio", RatioBound(to=SLOW.label, at_least=1.5))
    assert found == Outcome(
        True,
        "postgres/jdbc: ratio to elasticsearch/camel-bulk: measured 2 (2 to 2, 95 % of 5 blocks), asked at least 1.5",
    )
    assert not check("ratio", RatioBound(to=SLOW.label, at_least=2.5)).passed


def test_costs_are_figures_that_a_cell_which_was_not_warm_has_not() -> None:
    cpu: dict[str, object] = {"cpu_seconds_per_million": {"kafka": 1.0, "connect": 9.0}}
    figures = {**cpu, "total_peak_memory_bytes": 2.5e9, "disk_bytes_per_record": 410.0, "records": 100_000}
    taken = [each.model_copy(update=figures) for each in trials()]
    assert "measured 10 (10 to 10, 95 % of 5 blocks)" in check("cpu_seconds_per_million", Bound(at_most=10), taken).line
    found = check("memory_mb", Bound(at_most=2_400), taken)
    assert not found.passed
    assert "measured 2,500 (2,500 to 2,500, 95 % of 5 blocks)" in found.line
    assert check("disk_bytes_per_record", Bound(at_most=410), taken).passed
    cold = [each.model_copy(update={"warm": False, "compiling_share": 0.4}) for each in taken]
    found = check("cpu_seconds_per_million", Bound(at_most=99), cold)
    assert not found.passed
    assert "still warming" in found.line
    for figure in ("cpu_seconds_per_million", "memory_mb", "disk_bytes_per_record", "cost_per_million"):
        assert "not measured" in check(figure, Bound(at_most=1e9)).line


def test_a_rate_whose_interval_holds_the_threshold_says_that_more_trials_may_decide() -> None:
    found = check("records_per_second", Bound(at_least=10_200))
    assert not found.passed
    assert found.line == (
        "postgres/jdbc: records_per_second: measured 10,000 (9,000 to 11,000, 95 % of 5 blocks; the interval holds the"
        " threshold, so more trials may decide otherwise), asked at least 10,200"
    )
    assert "decide" not in check("records_per_second", Bound(at_least=20_000)).line
    few = check("records_per_second", Bound(at_least=20_000), trials([9_000, 10_000]))
    assert "measured 9,500 (lowest trial 9,000, highest 10,000; fewer than 5 have no interval)" in few.line


@pytest.mark.parametrize(
    ("figure", "bound", "passed"),
    [
        ("efficiency", Bound(at_least=0.25), True),
        ("efficiency", Bound(at_least=0.26), False),
        ("p99_ms", Bound(at_most=4), False),
        ("connections", Bound(at_most=18), True),
        ("connections", Bound(at_most=17), False),
        ("lost", Bound(at_most=0), True),
    ],
)
def test_each_figure_is_compared_with_its_bound(figure: str, bound: Bound, passed: bool) -> None:
    found = check(figure, bound)
    assert found.passed is passed, found.line


def test_connections_that_others_hid_are_not_measured_and_say_what_to_do() -> None:
    hidden = trial(9_000, FAST, block=9, connections=Connections(others=2))
    assert check("connections", Bound(at_most=999), [*trials(), hidden]) == Outcome(
        False,
        "postgres/jdbc: connections: not measured, asked at most 999; 2 of others were opened meanwhile;"
        " race without them",
    )


@pytest.mark.parametrize("figure", ["lost", "duplicates"])
def test_a_trial_that_was_not_audited_leaves_a_count_unmeasured(figure: str) -> None:
    died = trial(None, FAST, audit=None, invalid=["connect-2 died"], block=9)
    found = check(figure, Bound(at_most=0), [*trials(), died])
    assert not found.passed
    assert found.line == (
        f"postgres/jdbc: {figure}: not measured, asked at most 0; not audited in 1 of 6 trials (0 in the others):"
        " the notes of the run say why; race again"
    )
    # What is lost already is too much, whatever the other trial has lost.
    lossy = trial(9_000, FAST, audit=Audit(produced=9, stored=8, lost=2, duplicates=1), block=8)
    assert "measured" in check(figure, Bound(at_most=0), [*trials(), died, lossy]).line.replace("not measured", "")


@pytest.mark.parametrize("figure", ["records_per_second", "efficiency", "ratio"])
def test_what_was_not_measured_does_not_hold_and_says_why(figure: str) -> None:
    taken = [each.model_copy(update={"reasons": [because("the machine slept")]}) for each in trials()]
    bound = RatioBound(to=SLOW.label, at_least=0) if figure == "ratio" else Bound(at_least=0)
    found = check(figure, bound, taken)
    assert not found.passed
    assert "not measured, asked at least 0; the verdict of postgres/jdbc@3x1: invalid: the machine slept" in found.line


def test_a_cell_that_the_run_has_not_is_named_with_those_that_it_has() -> None:
    found = check("lost", Bound(at_most=0), cell="postgres/jdbc@6x1")
    assert not found.passed
    assert "name one of postgres/jdbc@3x1, elasticsearch/camel-bulk@3x1" in found.line


@pytest.mark.parametrize(("blocks", "says"), [(5, "95 % of 5 blocks"), (3, "lowest trial 0.25, highest 0.25")])
def test_an_efficiency_by_block_is_asked_with_its_own_interval(blocks: int, says: str) -> None:
    # As much faster and slower as the trials are, so that the share is the same in each block.
    found = [
        LimitInBlock(block=each.block, records_per_second=4 * (each.records_per_second or 0.0))
        for each in trials()
        if each.cell == FAST.key and each.block <= blocks
    ]
    held = check("efficiency", Bound(at_least=0.2), limit=reduce(with_block, found, LIMIT))
    assert held.passed
    assert says in held.line
    assert "0.25" in held.line
