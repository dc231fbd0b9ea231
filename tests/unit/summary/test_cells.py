"""From trials to cells: what is counted, what is left out, and what the verdict says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.content import NOT_AS_SENT
from sinkbench.errors import ReasonCode
from sinkbench.metrics.names import in_short
from sinkbench.results import Asked, Audit, Bloat, CellSummary, Connections, Pool, Reason, TrialRecord
from sinkbench.summary.cells import cpu_by_block, scalings, summarize
from tests.support.present import present
from tests.support.trials import CELL, CLEAN, JDBC, OTHER, a_cell, trial


def cell_of(*trials: TrialRecord) -> CellSummary:
    (only,) = summarize([CELL], trials)
    return only


def test_a_note_says_of_which_blocks_it_is_if_not_of_all() -> None:
    noted = [trial(block=block, notes=["in all", *(["in some"] if block > 1 else [])]) for block in (1, 2, 3)]
    assert cell_of(*noted).notes == ["in all", "in some (block 2, 3)"]


def test_a_cell_has_the_median_and_the_span_of_its_trials() -> None:
    cell = cell_of(trial(3000.0, placement={"w": 1}), trial(1000.0), trial(2000.0, placement={"w": 2}))
    rate = present(cell.records_per_second)
    assert (rate.median, rate.low, rate.high, rate.interval) == (2000, 1000, 3000, None)
    assert (rate.values, rate.blocks) == ([3000, 1000, 2000], [1, 1, 1])
    assert (cell.trials, cell.verdict, cell.passed, cell.placement) == (3, "ok", True, {"w": 2})
    assert (cell.tasks, cell.tasks_per_worker, cell.workers) == (24, 8, 3)


def test_a_trial_of_no_cell_of_the_plan_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the plan"):
        summarize([CELL], [trial(cell=OTHER)])


def test_a_cell_without_trials_is_invalid_and_has_no_numbers() -> None:
    cell = cell_of()
    assert (cell.invalid, cell.passed) == (["no trial was taken"], False)
    assert (cell.records_per_second, cell.audit, cell.connections) == (None, None, Connections())


def test_an_invalid_trial_is_left_out_of_the_numbers_and_named_in_a_note() -> None:
    cell = cell_of(trial(1000.0), trial(9.0, invalid=["elasticsearch was killed"]), trial(3000.0))
    assert present(cell.records_per_second).values == [1000.0, 3000.0]
    assert (cell.invalid, cell.passed, cell.notes) == ([], True, ["1 of 3 trials invalid: elasticsearch was killed"])


def test_a_cell_of_invalid_trials_alone_gives_each_reason_once() -> None:
    cell = cell_of(trial(1.0, invalid=["a"]), trial(2.0, invalid=["a", "b"]), trial(None))
    assert cell.records_per_second is None
    assert (cell.invalid, cell.verdict, cell.passed) == (["a", "b", "no rate could be measured"], "invalid: a", False)


def test_a_loss_is_not_hidden_by_the_invalid_trial_it_happened_in() -> None:
    lossy = Audit(produced=100, stored=81, lost=23, duplicates=4)
    cell = cell_of(trial(), trial(None, audit=lossy, invalid=["timed out"]))
    assert cell.audit == Audit(produced=200, stored=181, lost=23, duplicates=4)
    assert (cell.verdict, cell.passed) == ("LOST 23; DUPLICATED 4", False)
    assert cell.records_per_second is not None


@pytest.mark.parametrize(
    ("counts", "notes", "verdict"),
    [
        ({"compared": 64, "altered": 3}, [], "ALTERED 6 of 128 compared"),
        (
            {"compared": 64, "altered": 3},
            ["x", f"3 of 64 {NOT_AS_SENT}n changed; n from 7 to 8"],
            "ALTERED 6 of 128 compared: n changed; n from 7 to 8",
        ),
        ({"stored": 102, "foreign": 2}, [], "FOREIGN 4"),
    ],
)
def test_altered_and_foreign_records_fail_the_cell(counts: dict[str, int], notes: list[str], verdict: str) -> None:
    audit = CLEAN.model_copy(update=counts)
    cell = cell_of(trial(audit=audit), trial(audit=audit, notes=notes))
    assert (cell.verdict, cell.passed) == (verdict, False)


def test_a_check_of_the_content_that_could_not_be_made_is_not_ok_and_no_fault_and_has_no_rate() -> None:
    checked = Audit(produced=100, stored=100, lost=0, duplicates=0, compared=100, checked=100)
    few = checked.model_copy(update={"compared": 64, "checked": 0})
    assert cell_of(trial(audit=checked), trial(audit=few)).verdict == "ok"
    unchecked = checked.model_copy(update={"compared": 0, "checked": 0})
    cell = cell_of(trial(audit=checked), trial(audit=unchecked))
    assert cell.verdict == "content not checked: no record was compared with what was sent in 1 of 2 trials"
    assert (cell.passed, cell.records_per_second) == (True, None)
    assert in_short(cell) == "not checked"
    # Where all keys were deleted in the end there is nothing to check.
    empty = Audit(produced=100, stored=0, lost=0, duplicates=0, superseded=100, checked=0)
    assert cell_of(trial(audit=empty)).verdict == "ok"


def test_a_trial_without_an_audit_is_counted_next_to_the_zero_whether_it_is_valid_or_not() -> None:
    died = trial(None, audit=None, invalid=["connect-2 died"], not_audited="it could not be finished")
    cell = cell_of(trial(), died)
    assert (cell.audit, cell.not_audited, cell.passed) == (CLEAN, 1, True)
    unknown = "so what is lost there is not known: it could not be finished"
    assert cell.notes[-1] == f"not audited in 1 of 2 trials, {unknown}"
    alone = cell_of(died, trial(None, audit=None, invalid=["x"]))
    assert (alone.audit, alone.not_audited) == (None, 2)
    assert alone.notes[-1].startswith("not audited in 2 of 2 trials")
    assert cell_of(trial()).not_audited == 0


def interrupted(audit: Audit) -> TrialRecord:
    reason = {"code": ReasonCode.SERVICE_DIED, "text": "connect-2 died"}
    return trial(None, audit=audit, reasons=[reason], duplicated_ranges="3-6", lost_ranges="")


def test_records_that_went_twice_when_a_service_died_are_a_note_and_lost_ones_are_a_fault() -> None:
    twice = Audit(produced=100, stored=104, lost=0, duplicates=4)
    cell = cell_of(trial(), interrupted(twice))
    assert (present(cell.audit).duplicates, cell.passed) == (4, True)
    assert cell.notes[-1].startswith("seq of trial t1 (block 1): stored more than once 3-6; a task that begins again")
    assert cell_of(trial(), trial(audit=twice)).verdict == "DUPLICATED 4"
    assert cell_of(trial(), interrupted(Audit(produced=100, stored=98, lost=2, duplicates=0))).verdict == "LOST 2"


def test_what_was_lost_and_doubled_is_named_by_its_ranges_of_a_few_trials() -> None:
    lossy = Audit(produced=100, stored=96, lost=6, duplicates=2)
    kept = {"lost_ranges": "1, 3, 5, 7, 9, 11", "duplicated_ranges": "40-41"}
    cell = cell_of(*(trial(audit=lossy, trial=f"t{block}", block=block, **kept) for block in range(1, 6)))
    assert cell.notes[0] == (
        "seq of trial t1 (block 1): lost 1, 3, 5, 7, 9 and 1 more range; all are in trials.jsonl;"
        " stored more than once 40-41"
    )
    assert (len(cell.notes), cell.notes[3]) == (4, "2 more trials lost or doubled records: see trials.jsonl")


def test_what_a_trial_has_lost_that_was_taken_again_is_lost_all_the_same() -> None:
    lossy = Audit(produced=100, stored=98, lost=2, duplicates=0)
    again = trial(audit=lossy, trial="t0", pilot=True, lost_ranges="4-5")
    cell = cell_of(again, trial(), trial(audit=CLEAN, pilot=True))
    assert (cell.verdict, cell.trials, cell.notes[-1]) == ("LOST 2", 1, "seq of trial t0 (block 1): lost 4-5")
    assert cell.audit == Audit(produced=200, stored=198, lost=2, duplicates=0)


def test_a_valid_trial_that_was_not_audited_does_not_pass() -> None:
    cell = cell_of(trial(), trial(audit=None))
    assert (cell.verdict, cell.passed) == ("1 trial NOT AUDITED", False)
    assert cell_of(trial(audit=None), trial(audit=None)).verdict == "2 trials NOT AUDITED"


def test_connections_are_the_most_of_any_trial_and_stay_unknown_if_none_knew() -> None:
    most = trial(None, connections=Connections(clients_peak=97), invalid=["x"])
    cell = cell_of(trial(connections=Connections(clients_peak=5)), most)
    assert cell.connections == Connections(clients_peak=97, server_peak=None)


def test_a_peak_that_others_connections_hid_in_one_trial_is_not_known() -> None:
    known = Connections(clients_peak=36, server_peak=36, server_limit=100)
    hidden = Connections(server_limit=100, others=2)
    cell = cell_of(trial(connections=known), trial(connections=hidden))
    assert cell.connections == hidden
    assert cell.notes[0].startswith("peak connections not known: 2 connections were opened by others")


def test_trials_that_were_not_alone_are_left_out_and_named() -> None:
    who = "another connector, by-hand, ran 3 tasks on these workers"
    cell = cell_of(trial(1_000.0, block=1), trial(100.0, block=2, others=[who]))
    assert present(cell.records_per_second).values == [1_000.0]
    assert cell.notes == [f"1 of 2 trials not alone, and left out: {who}"]
    alone = cell_of(trial(100.0, others=[who]))
    assert alone.records_per_second is None
    assert (alone.passed, alone.verdict) == (True, f"not alone in its only trial: {who}")


def test_costs_are_medians_over_the_valid_trials_that_have_them() -> None:
    cell = cell_of(
        trial(cpu_seconds_per_million={"connect": 1.0, "kafka": None}, records_per_write=10.0),
        trial(cpu_seconds_per_million={"connect": 3.0, "kafka": None}, records_per_write=None),
        trial(cpu_seconds_per_million={"connect": 99.0}, records_per_write=99.0, invalid=["x"]),
    )
    assert (cell.cpu_seconds_per_million, cell.records_per_write) == ({"connect": 2.0, "kafka": None}, 10.0)


@given(st.lists(st.tuples(st.none() | st.floats(0, 1e6), st.booleans(), st.integers(0, 50)), max_size=6))
def test_numbers_and_reasons_never_contradict_each_other(drawn: list[tuple[float | None, bool, int]]) -> None:
    taken = [
        trial(rate, invalid=["x"] if bad else [], audit=Audit(produced=50, stored=50 - lost, lost=lost, duplicates=0))
        for rate, bad, lost in drawn
    ]
    cell = cell_of(*taken)
    assert (cell.records_per_second is None) == (bool(cell.invalid) or cell.at_least is not None)
    assert (cell.passed and cell.at_least is None) == (cell.verdict == "ok")
    assert (cell.audit.lost if cell.audit else 0) == sum(lost for _, _, lost in drawn)
    if cell.records_per_second is not None:
        assert cell.records_per_second.low <= cell.records_per_second.median <= cell.records_per_second.high


def test_from_five_valid_trials_on_a_rate_has_an_interval() -> None:
    few = cell_of(*(trial(1000.0 + block, block=block) for block in range(4)), trial(9.0, invalid=["x"]))
    assert present(few.records_per_second).interval is None
    enough = present(cell_of(*(trial(1000.0 + block, block=block) for block in range(5))).records_per_second)
    assert present(enough.interval).blocks == 5


def test_ratios_are_to_the_slowest_cell_of_the_same_job_from_blocks_in_which_both_are_valid() -> None:
    blocks = {1: 3, 2: 1, 3: 2, 4: 5, 5: 4, 6: 7, 7: 6}
    job = {"queries": [Asked(query="a", right=True, by_index=True)]}
    fast = [trial(3000.0 * noise, block=block, **job) for block, noise in blocks.items()]
    slow = [trial(1000.0 * noise, OTHER, block=n, invalid=["x"] * (n == 7), **job) for n, noise in blocks.items()]
    # What does less, or what nobody knows, is compared with neither.
    less = [trial(10.0, JDBC, block=n, queries=[Asked(query="a", right=True, by_index=False)]) for n in blocks]
    first, second, third = summarize([CELL, OTHER, JDBC], [*fast, *slow, *less])
    assert third.ratio is None
    unasked = [each.model_copy(update={"queries": []}) for each in (*fast, *slow)]
    assert [each.ratio for each in summarize([CELL, OTHER], unasked)] == [None, None]
    assert ((ratio := present(first.ratio)).to, ratio.blocks, ratio.estimate) == (OTHER.key, 6, pytest.approx(3))
    assert second.ratio is None


@pytest.mark.parametrize("rate", [0.0, None])
def test_a_cell_without_a_rate_above_0_has_no_ratio(rate: float | None) -> None:
    taken = [trial(rate, OTHER, block=block) for block in range(6)] + [trial(5.0, block=block) for block in range(6)]
    first, second = summarize([CELL, OTHER], taken)
    assert first.ratio is second.ratio is None
    assert (first.model_dump_json() + second.model_dump_json()).count("NaN") == 0


def test_tasks_that_do_not_wait_for_their_sink_are_noted_by_the_furthest_trial() -> None:
    ahead = {700_000: 60_000, 500_000: 286_296, 400_000: 250_000}
    (note,) = cell_of(*(trial(records=count, read_ahead_records=read) for count, read in ahead.items())).notes
    assert note.startswith("its tasks do not wait for the sink: up to 286,296 of 500,000 records")
    few = [trial(records=400_000, read_ahead_records=read) for read in (15_000, None)]
    assert cell_of(*few).notes == []


def test_trials_that_never_became_steady_are_noted_and_used() -> None:
    cell = cell_of(trial(steady=False), trial(steady=True), trial(steady=None), trial(invalid=["x"], steady=False))
    assert cell.notes == ["1 of 4 trials invalid: x", "1 of 3 trials never became steady"]
    assert cell.passed


def costing(*seconds: float, **also: float | None) -> list[TrialRecord]:
    """Trials whose services took so many CPU seconds a million records together."""
    used = [{"connect": each / 4, "kafka": 3 * each / 4, "controller": 9.0, **also} for each in seconds]
    return [trial(block=block, cpu_seconds_per_million=each) for block, each in enumerate(used, start=1)]


def test_the_cpu_time_of_all_services_has_an_interval_as_a_rate_has() -> None:
    cost = present(cell_of(*costing(43.3, 43.4, 43.9, 43.5, 43.2)).total_cpu_seconds_per_million)
    assert (cost.median, cost.low, cost.high) == (pytest.approx(43.4), pytest.approx(43.2), pytest.approx(43.9))
    assert 43.2 <= (interval := present(cost.interval)).low <= 43.4 <= interval.high <= 43.9
    assert present(cell_of(*costing(43.3, 43.4)).total_cpu_seconds_per_million).interval is None


def test_a_service_that_was_not_seen_makes_the_sum_unknown() -> None:
    assert cell_of(*costing(43.3, postgres=None)).total_cpu_seconds_per_million is None
    assert cell_of(*costing(43.3), trial(block=2)).total_cpu_seconds_per_million is None
    assert cpu_by_block([*costing(43.3), trial(block=2)]) == {1: pytest.approx(43.3)}


def test_only_a_label_with_several_numbers_of_tasks_has_a_scaling() -> None:
    cells = [a_cell("p/p", multiple, label="p") for multiple in (1, 2, 4, 8)]
    taken = [trial(100.0 * cell.tasks, cell) for cell in cells] + [trial(cell=OTHER)]
    (only,) = scalings([*cells, OTHER], taken)
    assert (only.label, only.supported) == ("p", True)
    assert [point.tasks for point in only.points] == [3, 6, 12, 24]


def test_wrong_keys_of_all_trials_are_faults_and_their_counts_are_added_up() -> None:
    wrong = Audit(produced=100, stored=40, lost=0, duplicates=0, superseded=60, stale=2, missing=1, not_deleted=1)
    good = Audit(produced=100, stored=40, lost=0, duplicates=0, superseded=60, stale=0, missing=0, not_deleted=0)
    bloats = (Bloat(dead_rows=10, deadlocks=1, bytes_after=100), Bloat(dead_rows=20, deadlocks=2, bytes_after=300))
    trials = [trial(audit=audit, bloat=bloat) for audit, bloat in zip((wrong, good), bloats, strict=True)]
    cell = cell_of(*trials)
    assert cell.verdict == "STALE 2; MISSING 1; NOT DELETED 1"
    assert [fault.code for fault in cell.faults] == [ReasonCode.STALE, ReasonCode.MISSING, ReasonCode.NOT_DELETED]
    assert cell.bloat == Bloat(dead_rows=15, deadlocks=3, bytes_after=200)
    assert cell_of(trial(audit=good)).passed
    assert cell_of(trial()).audit == Audit(produced=100, stored=100, lost=0, duplicates=0)


def test_deadlocks_of_trials_that_are_not_valid_are_not_hidden() -> None:
    broken = Reason(code=ReasonCode.TASKS_FAILED, text="2 of 3 tasks FAILED")
    bad = trial(None, reasons=[broken], failed_tasks=2, bloat=Bloat(dead_rows=900, deadlocks=2, rollbacks=5))
    good = trial(bloat=Bloat(dead_rows=10, deadlocks=0, rollbacks=1))
    cell = cell_of(bad, good)
    assert cell.bloat == Bloat(dead_rows=10, deadlocks=2, rollbacks=6)
    (note,) = [each for each in cell.notes if "deadlock" in each]
    assert note.startswith("2 deadlocks in 1 of 2 trials: tasks wrote the same rows")
    assert "key the topic by what is upserted" in note
    assert cell_of(bad).bloat == Bloat(deadlocks=2, rollbacks=5)
    assert not [each for each in cell_of(good).notes if "deadlock" in each]


def test_waits_in_a_pool_are_the_worst_and_the_median_of_the_trials() -> None:
    def pool(waiting: int | None, longest: float | None, each: float | None) -> Pool:
        return Pool(size=10, most_waiting=waiting, longest_wait_ms=longest, wait_ms_per_transaction=each)

    pools = (pool(2, 10.0, 1.0), pool(None, None, None), pool(5, 7.0, 2.0))
    assert cell_of(*(trial(pool=each) for each in pools)).pool == pool(5, 10.0, 1.5)
    assert cell_of(trial(pool=pool(None, None, None))).pool == pool(None, None, None)
    assert cell_of(trial()).pool is None


def test_bytes_on_disk_are_those_of_the_trials_with_enough_records() -> None:
    sizes = {66_100: 514.0, 100_000: 1_040.0, 101_000: 1_050.0}
    taken = [trial(records=count, disk_bytes_per_record=size, block=count) for count, size in sizes.items()]
    disk = present(summarize([CELL], taken)[0].disk_bytes_per_record)
    assert (disk.median, disk.values, disk.blocks) == (1_045.0, [1_040.0, 1_050.0], [100_000, 101_000])
    assert summarize([CELL], taken[:1])[0].disk_bytes_per_record is None
