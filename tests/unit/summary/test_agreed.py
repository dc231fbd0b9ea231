"""What a cell can answer, how durably it stores, and what a fault did to it, over its trials."""

from sinkbench.metrics.durability import alike
from sinkbench.metrics.queries import job_of
from sinkbench.metrics.recovery import recovery_over
from sinkbench.results import Asked, CellSummary, Durability, Recovery
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


def test_a_job_is_what_is_answered_rightly_and_by_an_index_and_none_where_that_is_not_known() -> None:
    cell = cell_summary(queries=[asked("a"), asked("b", right=False), asked("c", index=False), asked("d")])
    assert job_of(cell) == {"a", "d"}
    assert by_index(cell) == "2/4"
    failed = cell_summary(queries=[asked("a"), asked("b", right=False, index=None, problem="no such field")])
    assert job_of(failed) == {"a"}
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


SAFE = Durability(text="1 node, disk", nodes=1, on_disk=1, kafka="acks all, 1 of 1 in sync", kafka_nodes=1)
FAST = Durability(text="1 node, memory (5 s)", nodes=1, on_disk=0, kafka=SAFE.kafka, kafka_nodes=1)


def cell(durability: Durability | None) -> CellSummary:
    return cell_summary(durability=durability)


def test_a_cell_has_what_all_of_its_trials_had_and_a_note_where_they_differ() -> None:
    (found,) = summarize([CELL], [trial(durability=SAFE, block=block) for block in (1, 2)])
    assert found.durability == SAFE
    (unknown,) = summarize([CELL], [trial()])
    assert (unknown.durability, unknown.notes) == (None, [])
    (invalid,) = summarize([CELL], [trial(durability=SAFE, invalid=["no"])])
    assert invalid.durability == SAFE
    (found,) = summarize([CELL], [trial(durability=SAFE), trial(durability=FAST, block=2)])
    assert found.durability is None
    assert "its trials were not equally durable: 1 node, disk; 1 node, memory (5 s)" in found.notes


def test_cells_are_alike_if_their_promises_are() -> None:
    assert alike([cell(SAFE), cell(SAFE)]) is True
    assert alike([cell(SAFE), cell(FAST)]) is False
    assert alike([cell(SAFE), cell(SAFE.model_copy(update={"kafka": "acks 1"}))]) is False
    assert alike([cell(SAFE), cell(None)]) is None
    # Of a sink that does not tell what it promises only Kafka's part is known.
    assert alike([cell(SAFE), cell(Durability(kafka=SAFE.kafka, kafka_nodes=1))]) is None
    assert alike([cell(None), cell(None)]) is True


BACK = Recovery(target="postgres", recovered=True, first_record_seconds=4.0, rate_seconds=5.0, lag_seconds=6.0)


def test_times_are_medians_where_each_trial_has_seen_the_end() -> None:
    later = BACK.model_copy(update={"rate_seconds": 7.0, "standstill_seconds": 3.0})
    found = present(recovery_over([BACK, later, later]))
    assert (found.first_record_seconds, found.rate_seconds, found.lag_seconds) == (4.0, 7.0, 6.0)
    assert (found.standstill_seconds, found.is_silent) == (3.0, False)


def test_a_trial_that_stored_nothing_any_more_is_not_hidden_by_others() -> None:
    found = present(recovery_over([BACK, BACK, Recovery(target="postgres", recovered=True)]))
    assert (found.first_record_seconds, found.rate_seconds, found.lag_seconds) == (None, None, None)
    assert found.is_silent


def test_a_rate_that_one_trial_has_not_seen_is_not_known_though_records_came() -> None:
    found = present(recovery_over([BACK, BACK.model_copy(update={"rate_seconds": None})]))
    assert (found.first_record_seconds, found.rate_seconds, found.is_silent) == (4.0, None, False)
