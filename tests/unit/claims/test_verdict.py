"""Verdicts of claims on made-up results: both sides of every boundary, and noise that decides nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.intervals import interval_of
from sinkbench.analysis.latency import BOUNDED, GROWING, latency_of
from sinkbench.claims.lines import commands, last_lines, table
from sinkbench.claims.models import Bounds, CellOf, Claim
from sinkbench.claims.readings import Range
from sinkbench.claims.verdict import Outcome, Verdict, decided, verdict
from sinkbench.errors import ReasonCode
from sinkbench.results import CellSummary, Connections, PlanRef, RunSummary, SearchStep
from sinkbench.summary.cells import summarize
from tests.support.reasons import because
from tests.support.trials import a_cell, cell_in_blocks, cell_summary, run_summary, trial

YES, NO, OPEN = Outcome.REPLICATED, Outcome.REFUTED, Outcome.UNTOLD
A, B = {"label": "a/x"}, {"label": "b/y"}
RATIO = {"kind": "ratio", "of": [A], "to": B, "at_least": 2}


def claim(*shapes: dict[str, Any], plan: str | None = "mine", **fields: Any) -> Claim:
    bare = {"name": "x-1-y", "number": 1, "source": {"document": "d", "section": "s"}, "published": "p", "plan": plan}
    return Claim.model_validate({**bare, "shape": list(shapes) or None, **fields})


def run(*cells: CellSummary, name: str = "mine", **fields: Any) -> RunSummary:
    return run_summary(*cells, **{"plan": PlanRef(name=name, sha256="0"), **fields})


def told(found: Verdict) -> tuple[Outcome, str]:
    return found.outcome, found.why


@pytest.mark.parametrize(
    ("fast", "slow", "outcome", "why"),
    [
        # The furthest trials: from 200/100 to 220/90, and so on.
        ((200, 210, 220), (90, 95, 100), YES, ""),
        ((199, 210, 220), (90, 95, 100), OPEN, "noise"),
        ((150, 160, 199), (90, 95, 100), OPEN, "noise"),
        ((150, 160, 190), (96, 98, 100), NO, "off by a factor of 1.22"),
        ((900, 910), (100, 101), OPEN, "2 trials, of which nothing is told"),
    ],
)
def test_a_ratio_of_few_trials_is_decided_on_the_furthest_ones(
    fast: Any, slow: Any, outcome: Outcome, why: str
) -> None:
    found = verdict(claim(RATIO), [run(cell_summary("a/x", *fast), cell_summary("b/y", *slow))])
    assert found.outcome is outcome
    assert why in found.why
    assert bool(why) == bool(found.why)


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        ({"at_least": 2, "at_most": 4}, "off by a factor of 2.5"),
        ({"at_least": 20, "at_most": 40}, "off by a factor of 2"),
        ({"equals": 0}, ""),
        ({"at_least": 2, "at_most": 10}, ""),
    ],
)
def test_what_is_refuted_says_how_far_off_it_is(bounds: dict[str, float], why: str) -> None:
    shape = {**RATIO, "at_least": None, **bounds}
    cells = [cell_in_blocks("a/x", *[1_000.0] * 6), cell_in_blocks("b/y", *[100.0] * 6)]
    found = verdict(claim(shape), [run(*cells)])
    assert found.outcome is (YES if bounds.get("at_most") == 10 else NO)
    assert found.why == why


def test_from_five_blocks_on_a_ratio_is_paired() -> None:
    # Blocks differ by more than twice, the cells' ratio within each is 2.1.
    slow = [100.0, 250.0, 120.0, 180.0, 90.0, 300.0]
    cells = [cell_in_blocks("a/x", *(2.1 * each for each in slow)), cell_in_blocks("b/y", *slow)]
    found = verdict(claim(RATIO), [run(*cells)])
    assert (found.outcome, found.measured, found.run) == (YES, ("a/x / b/y: 2.1 (2.1-2.1), must be at least 2",), "r")
    four = [cell_in_blocks("a/x", *(2.1 * each for each in slow[:4])), cell_in_blocks("b/y", *slow[:4])]
    assert verdict(claim(RATIO), [run(*four)]).outcome is OPEN


def test_rates_of_a_task_are_divided_by_its_tasks() -> None:
    shape = {**RATIO, "per_task": True, "at_least": 0.9, "at_most": 1.1}
    cells = cell_summary("a/x", 400, 402, 404, tasks=12), cell_summary("b/y", 100, 101, 102, tasks=3)
    assert verdict(claim(shape), [run(*cells)]).outcome is YES
    assert verdict(claim({**shape, "per_task": False}), [run(*cells)]).outcome is NO


def test_no_difference_needs_a_narrow_range_not_one_with_1_in_it() -> None:
    shape = {**RATIO, "at_least": 0.9, "at_most": 1.1}
    near, far = cell_summary("a/x", 99, 100, 101), cell_summary("a/x", 50, 100, 200)
    assert verdict(claim(shape), [run(near, cell_summary("b/y", 99, 100, 101))]).outcome is YES
    assert verdict(claim(shape), [run(far, cell_summary("b/y", 99, 100, 101))]).outcome is OPEN


@pytest.mark.parametrize(
    ("last", "outcome"), [((50, 60), YES), ((88, 89), YES), ((88, 90), OPEN), ((91, 99), NO), ((100, 100), NO)]
)
def test_an_order_must_hold_at_each_step(last: Any, outcome: Outcome) -> None:
    shape = {"kind": "order", "falling": [A, B, {"label": "c/z"}], "by": 1.1}
    cells = cell_summary("a/x", 200, 205, 210), cell_summary("b/y", 98, 99, 100), cell_summary("c/z", *last, last[0])
    assert verdict(claim(shape), [run(*cells)]).outcome is outcome


@pytest.mark.parametrize(("falls_to", "outcome"), [(600, YES), (960, OPEN), (1_100, NO)])
def test_a_capacity_has_the_range_between_what_was_sustained_and_what_was_not(falls_to: int, outcome: Outcome) -> None:
    def capacity(label: str, rate: int) -> CellSummary:
        path = [SearchStep(offered=rate, outcome=BOUNDED), SearchStep(offered=rate + 90, outcome=GROWING)]
        return cell_summary(label, rate, mode="capacity", offered_records_per_second=rate, search=path)

    shape = {"kind": "order", "falling": [A, B]}
    assert verdict(claim(shape), [run(capacity("a/x", 1_000), capacity("b/y", falls_to))]).outcome is outcome


@pytest.mark.parametrize(("most", "outcome"), [(18, YES), (17, NO)])
def test_what_is_counted_is_exact(most: int, outcome: Outcome) -> None:
    cell = cell_summary("a/x", 100, connections=Connections(clients_peak=144, server_peak=18))
    shape = {"kind": "threshold", "figure": "connections", "of": A, "at_most": most}
    found = verdict(claim(shape), [run(cell)])
    assert (found.outcome, found.measured) == (outcome, (f"connections of a/x: 18, must be at most {most}",))


@pytest.mark.parametrize(("failed", "outcome"), [(0, YES), (1, NO)])
def test_a_count_is_exactly_so_many(failed: int, outcome: Outcome) -> None:
    shape = {"kind": "count", "figure": "failed_tasks", "of": A, "equals": 0}
    cell = cell_summary("a/x", 100, invalid=["FAILED"] * failed, failed_tasks=failed)
    assert verdict(claim(shape), [run(cell)]).outcome is outcome


@pytest.mark.parametrize(("figure", "of_invalid"), [("copies", YES), ("connections", OPEN)])
def test_what_is_counted_is_told_of_a_cell_that_is_not_warm(figure: str, of_invalid: Outcome) -> None:
    found: dict[str, Any] = {"durability": {"nodes": 2}, "connections": Connections(server_peak=2)}
    cold = cell_summary("a/x", 300, at_least=because("still warming", ReasonCode.NOT_WARM), **found)
    shape = {"kind": "count", "figure": figure, "of": A, "equals": 2}
    assert verdict(claim(shape), [run(cold)]).outcome is YES
    assert verdict(claim(shape), [run(cell_summary("a/x", 300, invalid=["FAILED"], **found))]).outcome is of_invalid


FAILS = {"kind": "failure", "of": A, "code": "tasks_failed", "says": ["too many clients"]}


@pytest.mark.parametrize(
    ("code", "text", "outcome"),
    [
        (ReasonCode.TASKS_FAILED, "FATAL: sorry, too many clients already", YES),
        (ReasonCode.TASKS_FAILED, "out of memory", OPEN),
        (ReasonCode.TIMED_OUT, "too many clients", OPEN),
        (None, "", NO),
    ],
)
def test_a_failure_is_one_for_its_reason(code: ReasonCode | None, text: str, outcome: Outcome) -> None:
    wrong = [] if code is None else [because(text, code)]
    cell = cell_summary("a/x", 100, passed=not wrong, faults=wrong, verdict=text or "ok")
    assert verdict(claim(FAILS), [run(cell)]).outcome is outcome


@pytest.mark.parametrize(("p99", "outcome"), [((5, 6, 9), YES), ((5, 6, 11), OPEN), ((11, 12, 13), NO), ((5,), OPEN)])
def test_a_latency_has_the_range_of_its_trials(p99: Any, outcome: Outcome) -> None:
    shape, cell = {"kind": "threshold", "figure": "p99_ms", "of": A, "at_most": 10}, a_cell("a/x")
    fields = [{"latency_ms": latency_of([ms * 1000] * 9_999), "trial": f"t{ms}"} for ms in p99]
    taken = [trial(100, cell, block=block, **each) for block, each in enumerate(fields, start=1)]
    summary = run(*summarize([cell], taken))
    assert verdict(claim(shape), [summary], {"r": taken}).outcome is outcome
    assert verdict(claim(shape), [summary]).outcome is OPEN


def test_the_share_of_a_service_is_of_all_services_but_sinkbench() -> None:
    cell, used = a_cell("a/x"), {"connect": 6.0, "kafka": 2.0, "postgres": 2.0, "controller": 9.0}
    taken = [trial(100, cell, block=block, cpu_seconds_per_million=used) for block in (1, 2, 3)]
    shape = {"kind": "threshold", "figure": "cpu_share.connect", "of": A, "at_least": 0.6}
    assert verdict(claim(shape), [run(*summarize([cell], taken))], {"r": taken}).outcome is YES


@pytest.mark.parametrize(
    ("ratios", "outcome"), [((1.1, 1.2, 1.3), YES), ((1.4, 1.4, 1.5), NO), ((1.2, 1.3, 1.4), OPEN)]
)
def test_nodes_are_compared_by_their_cpu_time(ratios: tuple[float, ...], outcome: Outcome) -> None:
    cell = a_cell("a/x")
    taken = [trial(9, cell, block=at, node_cpu_ratio={"connect": ratio}) for at, ratio in enumerate(ratios, 1)]
    shape = {"kind": "threshold", "figure": "node_cpu_ratio.connect", "of": A, "at_most": 1.3}
    assert verdict(claim(shape), [run(*summarize([cell], taken))], {"r": taken}).outcome is outcome


GOOD = (cell_summary("a/x", 300, 305, 310), cell_summary("b/y", 100, 100, 101))
BROKEN = cell_summary("a/x", 9, 9, 9, invalid=["broken"])
COLD = cell_summary("a/x", 300, 305, 310, at_least=because("still warming", ReasonCode.NOT_WARM))


@pytest.mark.parametrize(
    ("summary", "needs", "why"),
    [
        (run(*GOOD, name="other"), {}, "no run of plan mine"),
        (run(GOOD[0]), {}, "the run has no cell b/y"),
        (run(*GOOD, GOOD[1]), {}, "2 cells are b/y"),
        (run(*GOOD, complete=False), {}, "the run is not finished"),
        (run(cell_summary("a/x", invalid=["no rate"]), GOOD[1]), {}, "a/x: invalid: no rate"),
        (run(COLD, GOOD[1]), {}, "records_per_second of a/x@3x1: not final"),
        (run(BROKEN, GOOD[1]), {}, "records_per_second of a/x@3x1: invalid: broken"),
        (run(*GOOD, environment={"cpu_count": 2}), {"cores": 4}, "too few cores: needs 4, found 2"),
        (run(*GOOD), {"cores": 4}, "too few cores: needs 4, found no number of them"),
        (run(*GOOD, environment={"cpu_count": 4}), {"cores_at_most": 2}, "too many cores: needs 2 at most, found 4"),
        (run(*GOOD), {"topology": "published"}, "needs topology published, the run had an unknown one"),
        (run(*GOOD, environment={"security": "off"}), {"security": "on"}, "needs security on, the run had off"),
    ],
)
def test_what_is_missing_cannot_be_told(summary: RunSummary, needs: dict[str, Any], why: str) -> None:
    assert told(verdict(claim(RATIO, needs=needs), [summary])) == (OPEN, why)


def test_the_newest_run_that_is_on_what_the_claim_needs_decides() -> None:
    small = run(*GOOD, run="new", environment={"cpu_count": 2})
    large = run(*GOOD, run="old", environment={"cpu_count": 4})
    assert verdict(claim(RATIO, needs={"cores": 4}), [small, large]).run == "old"
    assert verdict(claim(RATIO), [small, large]).run == "new"


def test_all_shapes_must_hold() -> None:
    assert verdict(claim(RATIO, {**RATIO, "at_least": 4}), [run(*GOOD)]).outcome is NO
    assert verdict(claim(RATIO, FAILS | {"of": {"label": "c"}}), [run(*GOOD)]).outcome is OPEN


def test_published_figures_may_refute_their_claim_and_replicate_none() -> None:
    shape = {"kind": "arithmetic", "quotients": [[535, 320], [280, 160]], "at_least": 1.6}
    assert verdict(claim(shape, plan=None), []).outcome is OPEN
    found = verdict(claim({**shape, "at_most": 1.7}, plan=None), [])
    said = tuple(f"as published: {value}, must be 1.6 to 1.7" for value in (1.67, 1.75))
    assert (found.outcome, found.measured) == (NO, said)


def test_a_missing_run_has_its_command_where_this_machine_can_tell() -> None:
    needs = {"cores": 4, "topology": "published"}
    few, enough = (verdict(claim(RATIO, needs=needs), [], cores=cores) for cores in (2, 4))
    assert told(few) == (OPEN, "too few cores: needs 4, found 2")
    assert commands([few]) == {}
    line = "  SINKBENCH_TOPOLOGY=published sinkbench race mine    # 1 claim"
    assert last_lines([enough])[1:] == ["Runs that are missing:", line]


def test_the_table_has_at_most_100_columns() -> None:
    none = claim(name="mine-2-none", untestable="It is a rule.", plan=None, shape=None)
    found = [verdict(claim(RATIO, published="word " * 50), [run(*GOOD)]), verdict(claim(RATIO), []), verdict(none, [])]
    assert max(map(len, table(found))) <= 100
    assert [line for line in table(found) if ": " in line][:1] == ["Replicated: 1"]
    assert table(found)[-1] == "No run can tell mine-2; with such a name, the reason is shown."
    assert table(found, whole=True)[-1].endswith("  It is a rule.")
    assert last_lines(found)[0] == "3 claims: 1 replicated, 0 refuted here, 2 cannot be told here"


def test_a_quotient_is_told_without_what_both_cells_have() -> None:
    few, many = (CellOf(label="a/x", tasks=tasks, readers=1) for tasks in (3, 6))
    assert many.by(few) == "a/x, tasks 6 / tasks 3"
    assert many.by(CellOf(label="b/y", tasks=6)) == "a/x, readers 1 / b/y"
    assert many.by(CellOf(label="a/x", readers=1)) == "a/x, tasks 6 / without"


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"at_most": 3}, "at most 3"),
        ({"at_least": 1e3}, "at least 1,000"),
        ({"equals": 0}, "0"),
        ({"at_least": 1, "at_most": 2.5}, "1 to 2.5"),
    ],
)
def test_bounds_are_told_in_words(bounds: dict[str, float], said: str) -> None:
    assert str(Bounds(**bounds)) == said


AMOUNT = st.floats(0.01, 1e6)


@given(st.tuples(AMOUNT, AMOUNT), st.tuples(AMOUNT, AMOUNT), st.floats(0, 1e3), st.floats(0, 1e3))
def test_a_wider_range_never_decides_more(ends: Any, bounds: Any, below: float, above: float) -> None:
    asked = Bounds(at_least=min(bounds), at_most=max(bounds))
    low, high = sorted(ends)
    before, after = (decided(Range(low, *each), asked) for each in ((low, high), (low - below, high + above)))
    assert after in (before, OPEN)


@given(st.lists(AMOUNT, min_size=5, max_size=8), st.floats(1, 10), st.floats(1, 10), AMOUNT)
def test_a_wider_interval_of_a_cell_never_decides_more(
    rates: list[float], wider: float, widest: float, bound: float
) -> None:
    shape = {"kind": "threshold", "of": A, "at_least": bound}
    cell = cell_in_blocks("a/x", *rates)
    rate = cell.records_per_second
    assert rate is not None

    def outcome(factor: float) -> Outcome:
        interval = interval_of(rate.median / factor, rate.median * factor, "made up", len(rates))
        known = cell.model_copy(update={"records_per_second": rate.model_copy(update={"interval": interval})})
        return verdict(claim(shape), [run(known)]).outcome

    assert outcome(wider * widest) in (outcome(wider), OPEN)


@given(st.lists(AMOUNT, min_size=2, max_size=6), st.lists(AMOUNT, min_size=2, max_size=6), AMOUNT, st.data())
def test_a_verdict_does_not_change_without_unrelated_cells(
    fast: list[float], slow: list[float], bound: float, data: st.DataObject
) -> None:
    own = [cell_in_blocks("a/x", *fast), cell_in_blocks("b/y", *slow)]
    others = [cell_summary(f"c/{name}", 1, 2, invalid=["x"] * (name % 2)) for name in range(4)]
    kept = data.draw(st.lists(st.sampled_from(others), unique_by=lambda cell: cell.cell))
    asked = claim({**RATIO, "at_least": bound})
    assert told(verdict(asked, [run(*others, *own)])) == told(verdict(asked, [run(*own, *kept)]))
