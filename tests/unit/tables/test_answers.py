"""The answers of a run in words: each sentence is true when it is quoted alone."""

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.results import Asked, CellSummary, Reason
from sinkbench.tables.answers import answer_lines, at_least_in_words
from tests.support.trials import cell_summary, run_summary

INDEX, BULK, JDBC = "elasticsearch/camel-index", "elasticsearch/camel-bulk", "postgres/jdbc"
UNCHECKED = " Whether they do the same job was not checked: no queries were asked."


def said(*cells: CellSummary) -> list[str]:
    return answer_lines(run_summary(*cells))


def warming(label: str, rate: float, code: ReasonCode = ReasonCode.NOT_WARM) -> CellSummary:
    reason = Reason(code=code, text="still warming: it compiled", figures={"records_per_second": rate})
    return cell_summary(label, rate, rate, at_least=reason)


def test_the_best_of_each_sink_come_first_then_the_published_pair() -> None:
    index, jdbc = cell_summary(INDEX, 1_900, 2_000, 2_100), cell_summary(JDBC, 84_000, 90_200, 95_000)
    assert said(index, cell_summary(BULK, 27_000, 28_000, 29_000), jdbc) == [
        "Best of each sink: postgres/jdbc stored 3.2 times as many records/s as elasticsearch/camel-bulk"
        " (lowest trial against highest: 2.9)." + UNCHECKED,
        "As published: postgres/jdbc stored 45.1 times as many records/s as elasticsearch/camel-index"
        " (lowest trial against highest: 40.0)." + UNCHECKED,
    ]


@pytest.mark.parametrize(("environment", "is_said"), [({"cpu_count": 2}, True), ({"cpu_count": 8}, False), ({}, False)])
def test_a_load_of_others_is_in_the_sentence_if_it_is_much_of_the_machine(
    environment: dict[str, object], is_said: bool
) -> None:
    cells = [cell_summary(INDEX, 2_000, foreign_cores=0.4), cell_summary(JDBC, 90_000, foreign_cores=0.1)]
    (only,) = answer_lines(run_summary(*cells, environment=environment))
    taken = "others took up to 0.4 cores during elasticsearch/camel-index, which may be faster"
    assert only.endswith(f" But {taken}: race on a quieter machine.") is is_said


@pytest.mark.parametrize("cells", [[], [cell_summary("a/b", 5)]])
def test_there_is_no_answer_where_nothing_is_to_be_compared(cells: list[CellSummary]) -> None:
    assert said(*cells) == []


@pytest.mark.parametrize(
    "other",
    [
        cell_summary("c/d", 9, passed=False, verdict="LOST 1"),
        cell_summary("c/d", passed=False, verdict="invalid: x", invalid=["x"]),
        cell_summary("c/d", 0),
        warming("c/d", 9),
    ],
)
def test_without_two_cells_that_can_be_compared_only_what_is_missing_is_said(other: CellSummary) -> None:
    (only,) = said(cell_summary("a/b", 5), other)
    assert only.startswith("No answer. Not in the answer: c/d (")


def test_an_interval_that_holds_1_is_no_difference() -> None:
    interval = {"low": 0.97, "high": 1.0349, "confidence": 0.95, "method": "m", "blocks": 5}
    slow = cell_summary("a/b", 90, 95, 100, 105, 130)
    ratio = {"to": slow.cell, "estimate": 171.7, "blocks": 5, "interval": interval}
    assert said(slow, cell_summary("c/d", 15_000, 17_000, 19_000, ratio=ratio)) == [
        "Best of each sink: No difference found between c/d and a/b (between 0.97 and 1.03 times, 95 %, 5 blocks)."
        + UNCHECKED
    ]


def test_at_least_is_said_of_no_cell_that_may_be_quoted_or_is_invalid() -> None:
    assert at_least_in_words(warming(INDEX, 1_308)) == "at least 1,308"
    assert at_least_in_words(cell_summary(INDEX, 5)) is None
    invalid = {"reasons": [Reason(code=ReasonCode.NO_RATE, text="x")]}
    assert at_least_in_words(warming(INDEX, 1_308).model_copy(update=invalid)) is None


def answering(cell: CellSummary, **queries: tuple[bool | None, bool | None]) -> CellSummary:
    """A cell that answers queries, each rightly or not, and by an index or not."""
    asked = [Asked(query=name, right=right, by_index=index, found=1) for name, (right, index) in queries.items()]
    return cell.model_copy(update={"queries": asked})


BOTH, NEITHER = {"day": (True, True), "near": (True, True)}, {"day": (True, False), "near": (True, False)}


def test_each_job_that_both_sinks_do_has_its_answer_the_largest_first() -> None:
    some = {"day": (True, True), "near": (False, True)}
    cells = [
        answering(cell_summary("elasticsearch/all", 20_000), **BOTH),
        answering(cell_summary("elasticsearch/some", 30_000), **some),
        answering(cell_summary("elasticsearch/none", 40_000), **{**NEITHER, "day": (False, True)}),
        answering(cell_summary("postgres/all", 10_000), **BOTH),
        answering(cell_summary("postgres/some", 60_000), **{**some, "near": (True, False)}),
        answering(cell_summary("postgres/none", 90_000), **NEITHER),
    ]
    assert [line.split(":")[0] for line in said(*cells)] == [
        "Equal jobs (both answer all 2 queries by an index)",
        "Equal jobs (both answer 1 of 2 queries by an index",
        "Equal jobs (neither answers one of 2 queries by an index)",
    ]


def test_without_equal_jobs_nothing_is_compared_but_the_published_pair_which_says_so() -> None:
    bulk, bare = answering(cell_summary(BULK, 27_000), **BOTH), answering(cell_summary(JDBC, 90_000), **NEITHER)
    (only,) = said(bulk, bare)
    assert only.startswith("No two sinks do the same job: ")
    assert "elasticsearch/camel-bulk answers 2 of 2 queries by an index" in only
    first, published = said(answering(cell_summary(INDEX, 1_000), **BOTH), bare)
    assert first.startswith("No two sinks do the same job: ")
    assert published.startswith("As published: postgres/jdbc stored 90.0 times as many records/s")
    assert "They do not do the same job: postgres/jdbc answers 0 of 2 queries by an index, " in published


def test_a_cell_whose_answers_were_not_checked_is_missing() -> None:
    bulk, indexed = answering(cell_summary(BULK, 27_000), **BOTH), answering(cell_summary(JDBC, 14_000), **BOTH)
    unknown = answering(cell_summary("postgres/other", 80_000), day=(None, True), near=(True, True))
    lines = said(bulk, indexed, unknown, cell_summary("postgres/unasked", 90_000))
    assert lines[0].startswith("Equal jobs (both answer all 2 queries by an index): elasticsearch/camel-bulk stored")
    assert lines[1] == (
        "Not in the answer: postgres/other (what it can answer was not checked);"
        " postgres/unasked (what it can answer was not checked)."
    )
    assert len(lines) == 2


CAMEL, DEBEZIUM = "org.apache.camel.CamelSinkConnector", "io.debezium.JdbcSinkConnector"
BATCH = "postgres/camel-sql-batch"


def step(label: str, *rates: float, connector: str = CAMEL) -> CellSummary:
    return cell_summary(label, *rates, connector=connector, records_per_write=500)


def test_what_is_the_sinks_and_what_the_connectors_is_said_after_the_answers() -> None:
    found = said(step(BULK, 10_000), step(BATCH, 20_000), step(JDBC, 80_000, connector=DEBEZIUM))
    assert found[-1] == (
        "Sink or connector, in batches: postgres/camel-sql-batch stored 2.0 times what elasticsearch/camel-bulk did"
        " (the same connector), postgres/jdbc stored 4.0 times what postgres/camel-sql-batch did (the same sink)."
        " On a log scale 33 % of the difference is the sink's, 67 % the connector's."
    )


@pytest.mark.parametrize(
    ("between", "last", "words"),
    [
        (5_000, 80_000, "One makes up for the other, so neither has a share"),
        (
            20_000,
            10_000,
            "postgres/jdbc was not faster than elasticsearch/camel-bulk in every block, so there is nothing",
        ),
    ],
)
def test_steps_in_opposite_directions_and_no_difference_have_no_shares(between: float, last: float, words: str) -> None:
    found = said(step(BULK, 10_000), step(BATCH, between), step(JDBC, last, connector=DEBEZIUM))
    assert words in found[-1]
    assert "%" not in found[-1]


def test_a_cell_that_is_missing_from_a_way_is_named() -> None:
    lossy = step(BATCH, 20_000).model_copy(update={"passed": False, "verdict": "LOST 1"})
    found = said(step(BULK, 10_000), lossy, step(JDBC, 80_000, connector=DEBEZIUM))
    assert found[-1].endswith("Sink or connector, in batches: not known without postgres/camel-sql-batch.")


def test_a_job_that_a_cell_does_which_may_not_be_quoted_is_not_overlooked() -> None:
    bulk, bare = answering(cell_summary(BULK, 15_000), **BOTH), answering(cell_summary(JDBC, 56_000), **NEITHER)
    (only,) = said(bulk, bare, answering(warming("postgres/jdbc-indexed", 26_000), **BOTH))
    assert only.startswith("No answer. Not in the answer: postgres/jdbc-indexed (at least 26,000 records/s, warming).")
