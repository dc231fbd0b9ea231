"""Which cells are compared, and that what is missing from a run makes no answer wrong."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.errors import ReasonCode
from sinkbench.results import Asked, CellSummary, PlanRef, Reason, RunSummary
from sinkbench.summary.answers import Answer, answers_of, changes_of, ends_of, left_out, published_of
from tests.support.present import present
from tests.support.trials import cell_in_blocks, cell_summary, run_summary

INDEX, BULK = "elasticsearch/camel-index", "elasticsearch/camel-bulk"
JDBC, POOLED, INDEXED = "postgres/jdbc", "postgres/jdbc-pgbouncer", "postgres/jdbc-indexed"
QUERIES = ("day", "near")


def asked(*by_index: str, unknown: bool = False) -> list[Asked]:
    right = None if unknown else True
    return [Asked(query=name, right=right, by_index=name in by_index, found=1) for name in QUERIES]


def doing(label: str, *rates: float, job: Sequence[str] | None = QUERIES, **fields: object) -> CellSummary:
    """A final cell that answers these queries from an index; None: that is not known."""
    queries = asked(unknown=True) if job is None else asked(*job)
    return cell_in_blocks(label, *rates, queries=queries, fastest_trial=max(rates, default=None), **fields)


def not_final(cell: CellSummary, fastest: float | None = None, *, bounded: bool = False) -> CellSummary:
    """The cell as it is while it warms; with another fastest trial, or with that as a lower bound."""
    fastest = cell.fastest_trial if fastest is None else fastest
    figures = {"records_per_second": fastest} if bounded and fastest is not None else {}
    reason = Reason(code=ReasonCode.NOT_WARM, text="still warming", figures=figures)
    return cell.model_copy(update={"at_least": reason, "records_per_second": None, "fastest_trial": fastest})


def failed(cell: CellSummary) -> CellSummary:
    return cell.model_copy(update={"passed": False, "verdict": "LOST 1"})


def planned(*cells: CellSummary) -> RunSummary:
    """A run of which no cell is missing from its plan's."""
    plan = PlanRef(name="mine", sha256="0", trials=3, cells={cell.cell: cell.sink for cell in cells})
    return run_summary(*cells, plan=plan)


def only(*cells: CellSummary) -> Answer:
    (found,) = answers_of(run_summary(*cells))
    return found


def test_the_fastest_cells_that_do_the_same_job_are_compared_and_the_ratio_is_paired_by_block() -> None:
    slow = [doing(INDEX, 1_300), doing(BULK, 100, 110, 120, 130, 140)]
    fast = [doing(INDEXED, 200, 220, 240, 260, 280), doing(JDBC, 90_000, job=())]
    pair = present(only(*slow, *fast).pair)
    assert (pair.faster.label, pair.slower.label) == (INDEX, INDEXED)
    pair = present(only(*slow[1:], *fast).pair)
    assert (pair.faster.label, pair.slower.label) == (INDEXED, BULK)
    assert (pair.ratio.estimate, pair.low, pair.high) == (pytest.approx(2), pytest.approx(200 / 140), 2.8)
    assert pair.ratio.interval is not None


def test_each_job_has_its_answer_the_largest_first_and_capacities_have_no_interval() -> None:
    cells = [
        doing(f"{sink}/{len(job)}", *[rate] * 5, job=job, mode="capacity")
        for sink, rate in (("elasticsearch", 100.0), ("postgres", 200.0))
        for job in (("day",), (), QUERIES)
    ]
    found = answers_of(run_summary(*cells))
    assert [len(each.job or ()) for each in found] == [2, 1, 0]
    ratios = [present(each.pair).ratio for each in found]
    assert [(each.estimate, each.interval, each.blocks) for each in ratios] == [(2, None, 0)] * 3


REFERENCE = {"connector": "sinkbench.reference.Connector"}


def test_reference_connectors_are_compared_with_each_other_and_then_the_others_at_each_job() -> None:
    ours = [doing("elasticsearch/bulk", 60_000, **REFERENCE), doing("postgres/copy", 30_000, **REFERENCE)]
    theirs = [doing(BULK, 20_000), doing(INDEXED, 25_000)]
    bare = [doing("postgres/copy-bare", 90_000, job=(), **REFERENCE), doing(JDBC, 80_000, job=())]
    found = answers_of(run_summary(*theirs, *ours, *bare))
    faster = {each.through: present(each.pair).faster.label for each in found}
    assert list(faster.items()) == [("reference", "elasticsearch/bulk"), ("others", INDEXED)]
    # What is missing of the one leaves the other as it is.
    found = answers_of(run_summary(*theirs, *ours[:1], not_final(ours[1])))
    assert [(each.through, each.pair is None) for each in found] == [("reference", True), ("others", False)]
    assert (only(*theirs, *ours[:1], *bare).through, only(*ours, *bare).through) == ("others", "reference")
    # Neither kind of connector does this job with both sinks.
    found = only(ours[0], theirs[1], *bare)
    assert (found.through, present(found.pair).faster.label) == (None, "elasticsearch/bulk")


BELOW, AT = 19_999, 20_000


@pytest.mark.parametrize(
    ("other", "decided"),
    [
        (not_final(doing(BULK), BELOW), True),
        (not_final(doing(BULK), AT), False),
        (not_final(doing(BULK)), False),
        (failed(doing(BULK, BELOW)), True),
        (failed(doing(BULK, AT)), False),
        (doing(BULK, invalid=["died"]), False),
        # It may do this job or any other.
        (doing(BULK, BELOW, job=None), True),
        (doing(BULK, AT, job=None), False),
        (cell_summary(BULK, AT), False),
        (not_final(doing(BULK, job=()), 90_000), True),
        (doing(BULK, 90_000, job=("day",)), True),
    ],
)
def test_a_cell_that_may_be_faster_than_the_one_that_stands_in_for_its_sink_leaves_the_answer_open(
    other: CellSummary, decided: bool
) -> None:
    for cells in ([doing(INDEX, AT), other], [other, doing(INDEX, AT)]):
        found = only(*cells, doing(INDEXED, 25_000), doing(JDBC, 80_000, job=("near",)))
        assert (found.pair is not None, found.job) == (decided, frozenset(QUERIES))
        assert [cell.label for side in found.sides for cell in side.undecided] == ([] if decided else [BULK])


def test_the_bound_is_that_of_the_fastest_trials_and_none_where_nothing_is_known() -> None:
    index, indexed = doing(INDEX, 1_200), doing(INDEXED, 25_000, 26_000, 27_000)
    bulk = doing(BULK)
    assert only(index, not_final(bulk, 25_000), indexed).bound() == (27_000 / 25_000, False)
    assert only(index, not_final(bulk, 25_000, bounded=True), indexed).bound() == (27_000 / 25_000, True)
    assert only(index, not_final(bulk), indexed).bound() is None
    # Either may be faster than it was.
    assert only(index, not_final(bulk, 25_000), not_final(indexed)).bound() is None


def test_a_cell_that_the_plan_has_and_the_summary_lacks_is_unknown() -> None:
    whole = planned(doing(INDEX, 1_200), doing(BULK, 30_000), doing(INDEXED, 25_000))
    assert present(answers_of(whole)[0].pair).faster.label == BULK
    (found,) = answers_of(whole.model_copy(update={"cells": [whole.cells[0], whole.cells[2]]}))
    assert (found.pair, found.bound(), found.sides[0].missing) == (None, None, [f"{BULK}@3x1"])
    no_sink = whole.model_copy(update={"cells": whole.cells[:2]})
    assert [(each.job, each.pair) for each in answers_of(no_sink)] == [(None, None)]


def test_without_queries_nothing_is_decided_and_without_rates_there_is_no_answer() -> None:
    (found,) = answers_of(run_summary(cell_summary(BULK, 20_000), cell_summary(JDBC, 80_000)))
    assert (found.job, found.pair, found.bound()) == (None, None, None)
    assert [cell.label for cell in found.fastest] == [BULK, JDBC]
    assert answers_of(run_summary(*[cell_summary(label, invalid=["died"]) for label in (BULK, JDBC)])) == []
    assert answers_of(run_summary(*[cell_summary(label, 5, mode="sustain") for label in (BULK, JDBC)])) == []


STATES = {"final": lambda cell: cell, "warming": not_final, "failed": failed}
CELLS = st.lists(
    st.tuples(
        st.sampled_from(["elasticsearch", "postgres"]),
        st.sampled_from([QUERIES, ("day",), (), None]),
        st.lists(st.floats(1, 1e5), min_size=1, max_size=3),
        st.sampled_from(sorted(STATES)),
        st.booleans(),
    ),
    min_size=2,
    max_size=7,
)


def ratios(summary: RunSummary) -> dict[tuple[object, ...], float]:
    """The decided ratios by job and sinks, the first sink's to the second's."""
    found = {}
    for each in answers_of(summary):
        if each.pair is not None:
            sinks = tuple(sorted(side.sink for side in each.sides))
            ratio = each.pair.ratio.estimate
            found[each.job, each.through, *sinks] = ratio if each.pair.faster.sink == sinks[0] else 1 / ratio
    return found


@given(CELLS, st.data())
def test_what_is_missing_from_a_run_never_makes_a_ratio_of_sinks_larger_than_the_whole_run_allows(
    drawn: list[tuple[str, Sequence[str] | None, list[float], str, bool]], data: st.DataObject
) -> None:
    cells = [
        STATES[state](doing(f"{sink}/{number}", *rates, job=job, **REFERENCE if reference else {}))
        for number, (sink, job, rates, state, reference) in enumerate(drawn)
    ]
    whole = planned(*cells)
    lost = {
        "dropped": lambda cell: [],
        "not final": lambda cell: [not_final(cell)],
        "failed": lambda cell: [failed(cell)],
        "never tried": lambda cell: [cell_summary(cell.label, invalid=["died"], connector=cell.connector)],
        "not checked": lambda cell: [cell.model_copy(update={"queries": []})],
    }
    ways = data.draw(st.lists(st.sampled_from(["kept", *lost]), min_size=len(cells), max_size=len(cells)))
    left = [each for cell, way in zip(cells, ways, strict=True) for each in lost.get(way, lambda cell: [cell])(cell)]
    allowed = ratios(whole)
    # Nothing that the whole run leaves open is decided, and nothing is decided otherwise.
    for key, ratio in ratios(whole.model_copy(update={"cells": left})).items():
        assert ratio == pytest.approx(allowed[key])


def test_one_sink_compares_the_ends_of_each_job() -> None:
    cells = [doing("postgres/a", 100, job=()), doing("postgres/b", 300, job=()), doing("postgres/c", 200, job=())]
    pairs = [(each.faster.label, each.slower.label) for each in ends_of(run_summary(*cells, doing(INDEXED, 50)))]
    assert pairs == [("postgres/b", "postgres/a")]
    unasked = [cell_summary("postgres/a", 1), cell_summary("postgres/b", 3), cell_summary("postgres/c", 9, target="t")]
    assert [each.faster.label for each in ends_of(run_summary(*unasked))] == ["postgres/b"]
    assert ends_of(run_summary(cells[0])) == ends_of(run_summary()) == []
    assert ends_of(run_summary(cells[0], doing(BULK, 5))) == []


def test_the_published_pair_is_compared_at_as_many_tasks_and_only_if_it_is_final() -> None:
    index, jdbc = cell_summary(INDEX, 1_300), cell_summary(JDBC, 60_000)
    assert present(published_of(run_summary(index, jdbc))).faster.label == JDBC
    assert published_of(run_summary(cell_summary(INDEX, 1_300, tasks=6), jdbc)) is None
    assert published_of(run_summary(not_final(index), jdbc)) is None


CAMEL = "org.apache.camel.kafkaconnector.CamelSinkConnector"
POOL = {"mode": "transaction"}


def test_single_changes_are_told_of_cells_that_differ_in_nothing_else() -> None:
    index = doing(INDEX, 1_000, 1_200, connector=CAMEL, records_per_write=1.0)
    bulk = doing(BULK, 20_000, 24_000, connector=CAMEL, records_per_write=497.0)
    (batches,) = changes_of(run_summary(index, bulk))
    assert (batches.what, batches.first.label, batches.second.label) == ("batches", INDEX, BULK)
    assert batches.ratio == pytest.approx((20, 20_000 / 1_200, 24))
    # Of a cell that is not final the fastest trials tell, and no range.
    (batches,) = changes_of(run_summary(index, not_final(bulk)))
    assert batches.ratio == pytest.approx((20, 20, 20))
    bare, indexed = doing(JDBC, 80_000, job=()), doing(INDEXED, 20_000, pipeline=JDBC, target="indexed.sql")
    assert [each.what for each in changes_of(run_summary(bare, indexed))] == ["indexes"]
    other = indexed.model_copy(update={"overrides": {"batch.size": "9"}})
    assert changes_of(run_summary(bare, other)) == []


def test_the_fastest_connector_that_people_use_is_compared_with_the_reference_connector_at_the_same_job() -> None:
    ours = {"connector": "sinkbench.reference.ElasticsearchBulkConnector"}
    cells = [
        doing(INDEX, 1_000, connector="a.Camel"),
        doing(BULK, 20_000, 22_000, 24_000, connector="a.Camel"),
        doing("elasticsearch/reference-bulk", 44_000, 50_000, 56_000, **ours),
        doing("elasticsearch/reference-bare", 90_000, 95_000, 99_000, job=(), target="none.json", **ours),
        doing(JDBC, 80_000, job=(), connector="d.Jdbc"),
        doing("postgres/reference-copy", 99_000, connector="sinkbench.reference.PostgresCopyConnector"),
    ]
    (found,) = (each for each in changes_of(run_summary(*cells)) if each.what == "connector")
    assert (found.first.label, found.second.label) == ("elasticsearch/reference-bulk", BULK)
    assert found.ratio == pytest.approx((22 / 50, 20 / 56, 24 / 44))


def test_cells_that_are_not_final_or_not_checked_are_left_out() -> None:
    cells = [doing(BULK, 5), doing(JDBC, 5, job=None), not_final(doing(INDEXED, 5)), failed(doing(POOLED, 5))]
    assert (left_out(run_summary(*cells)), left_out(run_summary(cell_summary(BULK, 5)))) == (cells[1:], [])
