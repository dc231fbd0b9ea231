"""What a cell can answer, over its trials."""

from sinkbench.metrics.queries import job_of
from sinkbench.results import Asked
from sinkbench.summary.cells import summarize
from sinkbench.tables.lines import by_index, query_lines, query_table, shown
from tests.support.present import present
from tests.support.trials import CELL, cell_summary, run_summary, trial


def asked(
    query: str, *, right: bool | None = True, index: bool | None = True, ms: float = 1.0, problem: str = ""
) -> Asked:
    return Asked(query=query, right=right, by_index=index, found=5, milliseconds=ms, problem=problem)


def test_wrong_once_is_wrong_and_the_time_is_the_median() -> None:
    trials = [
        trial(queries=[asked("a", ms=1), asked("b", right=None)]),
        trial(queries=[asked("a", ms=2), asked("b")]),
        trial(queries=[asked("a", ms=30, right=False), asked("b", index=False)]),
        trial(),
    ]
    (cell,) = summarize([CELL], trials)
    a, b = cell.queries
    assert (a.right, a.by_index, a.milliseconds) == (False, True, 2)
    assert (b.right, b.by_index) == (True, False)


def test_a_job_is_what_is_answered_rightly_and_by_an_index() -> None:
    cell = cell_summary(queries=[asked("a"), asked("b", right=False), asked("c", index=False), asked("d")])
    assert job_of(cell) == {"a", "d"}
    assert by_index(cell) == "2/4"
    failed = cell_summary(queries=[asked("a"), asked("b", right=False, index=None, problem="no such field")])
    assert job_of(failed) == {"a"}


def test_a_job_that_is_not_known_is_none() -> None:
    unknown: list[list[Asked]] = [[], [asked("a"), asked("b", right=None)], [asked("a", index=None)]]
    assert [job_of(cell_summary(queries=each)) for each in unknown] == [None] * 3


def test_the_table_says_what_is_slow_wrong_or_failed() -> None:
    assert (shown(asked("a", ms=12.4)), shown(asked("a", ms=1234, index=False))) == ("12 ms", "1,234 ms full scan")
    assert (shown(asked("a", right=False)), shown(asked("a", right=False, problem="gone"))) == ("wrong", "failed")
    assert shown(None) == "-"
    summary = run_summary(
        cell_summary("postgres/a", 1.0, queries=[asked("x"), asked("y", right=False)]),
        cell_summary("postgres/b", 1.0, queries=[asked("y", right=False, problem="no such column")]),
    )
    assert present(query_table(summary)).row_count == 2
    assert query_lines(summary)[:2] == [
        "postgres/a: cannot answer y rightly.",
        "postgres/b: queries failed: y (no such column).",
    ]
    assert query_table(run_summary(cell_summary())) is None
    assert query_lines(run_summary(cell_summary())) == []
