"""Sizes from made-up runs: what is measured, what is extrapolated, and which requirement fails."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.size import CPU as CPU_TIME
from benchmarks.size import DISK, P99, RATE, Prediction, error_lines, predictions
from sinkbench.analysis.scalability import Law
from sinkbench.errors import ReasonCode, SizeError
from sinkbench.plan.cells import Cell
from sinkbench.results import Asked as Query
from sinkbench.results import Audit, CellSummary, Connections, LatencyMs, Memory, Pool
from sinkbench.runs.reader import StoredRun
from sinkbench.size.lines import lines, plain
from sinkbench.size.measured import measured
from sinkbench.size.sizes import Asked, Size, sizes
from sinkbench.summary.cells import scalings, summarize
from tests.support.reasons import because
from tests.support.trials import a_cell, cell_summary, run_summary, trial

CPU = {"kafka": 0.5, "connect": 6.5, "postgres": 10.0, "elasticsearch": 0.01, "controller": 99.0}
SEEN = {tasks: Connections(clients_peak=6 * tasks, server_peak=6 * tasks, server_limit=100) for tasks in range(1, 13)}
# One worker, none of which may fail, so that any number of tasks is allowed.
ALONE = {"may_fail": 0, "headroom": 0.0, "cores_per_worker": 64}


def run(
    rates: Mapping[Cell, Sequence[float]], *more: CellSummary, name: str = "r", size: int = 512, **fields: Any
) -> StoredRun:
    """A finished run whose trials have these rates, and cells without any trial of their own."""
    taken: dict[str, Any] = {"records": 200_000, "disk_bytes_per_record": 600.0, "fetched_bytes_per_record": 550.0}
    taken |= {"cpu_seconds_per_million": CPU, **fields}
    trials = [
        trial(rate, cell, **{"connections": SEEN[cell.tasks], **taken}, trial=f"{cell.key}{block}", block=block)
        for cell, each in rates.items()
        for block, rate in enumerate(each, 1)
    ]
    summary = run_summary(
        *summarize([*rates], trials), *more, run=name, scaling=scalings([*rates], trials), environment={"cpu_count": 2}
    )
    return StoredRun(summary, trials, {"load": {"record_bytes": size}}, {})


def only(*runs: StoredRun, rate: float = 20_000, **asked: Any) -> Size:
    (found,) = sizes(measured(runs, asked.get("record_bytes")), Asked(rate, **{**ALONE, **asked}))
    return found


def jdbc(*rates: float, tasks: int = 3) -> dict[Cell, Sequence[float]]:
    return {a_cell(multiple=tasks, workers=1): rates}


ONE = jdbc(30_000, 29_000, 31_000)


def values(found: Size, *names: str) -> list[float]:
    return [found.figures[name].value for name in names]


def test_what_a_pipeline_takes_at_the_rate_is_what_it_took_for_a_record() -> None:
    found = only(run(ONE, peak_memory={"connect": Memory(heap_bytes=600e6)}), headroom=0.25, keep_days=30)
    assert values(found, "heap_mb") == [600]
    assert "heap 600 MB a worker" in "".join(lines([found], Asked(20_000), ["r"]))
    assert found.state == "qualifies"
    assert values(found, "tasks", "partitions", "workers", "connections") == [3, 3, 1, 18]
    # 0.01 s of Elasticsearch is no part of the path, nor is sinkbench's own time.
    assert sorted(name for name in found.figures if "." in name) == ["cores.connect", "cores.kafka", "cores.postgres"]
    assert values(found, "cores", "network_mb") == pytest.approx([17 * 0.02, 11])
    assert values(found, "disk_gb_a_day", "disk_gb_kept") == pytest.approx([1036.8, 31_104])
    assert values(found, "catch_up_seconds") == pytest.approx([3_600 * 20_000 / 10_000])
    assert found.figures["tasks"].basis == "measured"
    # 100 connections are those of 16 tasks.
    assert found.binds == "CPU (2 cores) at 117,647/s"
    assert only(run(ONE, cpu_seconds_per_million={"connect": 1})).binds == "100 connections at 160,000/s"


@pytest.mark.parametrize(
    ("rate", "tasks", "basis", "rest"),
    [
        (10_000, 1, "within the measured", "measured"),
        (30_000, 3, "measured", "measured"),
        (60_000, 6, "extrapolated", "extrapolated"),
        (60_001, 7, "extrapolated beyond twice", "extrapolated beyond twice"),
    ],
)
def test_a_rate_beyond_the_measured_one_is_marked(rate: float, tasks: int, basis: str, rest: str) -> None:
    found = only(run(ONE), rate=rate).figures
    assert (found["tasks"].value, found["tasks"].basis, found["cores"].basis) == (tasks, basis, rest)
    assert found["tasks"].times == pytest.approx(1 if basis == "measured" else tasks / 3)


def test_workers_are_those_for_the_connectors_cpu_and_those_that_may_fail_and_tasks_are_a_multiple() -> None:
    # 6.5 s a million are 0.26 cores at 40,000/s.
    found = only(run(ONE), rate=20_000, headroom=0.5, cores_per_worker=0.1, may_fail=2)
    assert values(found, "workers", "tasks", "connections") == [5, 5, 30]


@pytest.mark.parametrize(("size", "servers"), [(4, 4), (40, 6)])
def test_tasks_open_as_many_server_connections_as_the_pool_has_and_no_pool_refuses_tasks(
    size: int, servers: int
) -> None:
    peak = min(size, 3)
    pooled = {"connections": Connections(clients_peak=48, server_peak=peak, server_limit=90), "pool": Pool(size=size)}
    found = only(run(ONE, **pooled), rate=60_000)
    assert values(found, "tasks", "connections", "server_connections") == [6, 96, servers]
    assert found.state == "qualifies"
    assert only(run(ONE, **{**pooled, "pool": None}), rate=60_000).fails == [
        "connections: 96 are needed, the server accepts 90"
    ]


def test_without_the_cpu_time_of_connect_workers_are_not_known() -> None:
    found = only(run(ONE, cpu_seconds_per_million={"postgres": 10.0}))
    assert found.unknown == ["workers: the CPU time of Connect was not measured"]


def test_rates_of_two_machines_are_never_one_pipeline() -> None:
    small, large = run(ONE), run(jdbc(120_000, 119_000, 121_000, tasks=12), name="large")
    large.summary.environment.update(cpu_count=64, security="on")
    found = {each.measured.name: each for each in sizes(measured([small, large], None), Asked(100_000, **ALONE))}
    assert list(found) == ["postgres/jdbc (2 cores)", "postgres/jdbc (64 cores, security on)"]
    assert values(found["postgres/jdbc (2 cores)"], "tasks") == [10]


LAW = Law(10_000, 0.05, 0.01)
BY_LAW = {a_cell(multiple=n, workers=1): [LAW.rate(n) * (1 + d) for d in (-0.02, 0, 0.02)] for n in (1, 2, 4, 8)}


def test_the_fitted_law_says_how_many_tasks_and_which_rate_is_out_of_reach() -> None:
    found = only(run(BY_LAW), rate=LAW.rate(6) - 1)
    assert (found.curve, values(found, "tasks")) == ("law", [6])
    assert found.figures["tasks"].low <= 6 <= found.figures["tasks"].high
    peak = round(LAW.peak)
    found = only(run(BY_LAW), rate=LAW.rate(peak) * 1.01)
    assert found.state == "fails"
    assert found.fails[0].endswith(f"at most {LAW.rate(peak):,.0f} with {peak} tasks by the fitted law")
    # A newer run of one number of tasks leaves the law as it is.
    assert only(run(jdbc(5, 5, 5), name="newer"), run(BY_LAW), rate=LAW.rate(6) - 1).curve == "law"


def test_without_a_law_a_rate_goes_on_as_it_went_last() -> None:
    flat = {**jdbc(30_000, 30_000, 30_000), **jdbc(30_000, 30_000, 30_000, tasks=6)}
    (why,) = only(run(flat), rate=30_001).fails
    assert why == "rate: needs 30,001, at most 30,000 with 3 tasks on from the measured rates"
    slower = {**jdbc(30_000, 30_000, 30_000), **jdbc(45_000, 45_000, 45_000, tasks=6)}
    assert values(only(run(slower), rate=60_000), "tasks") == [9]
    assert values(only(run(slower), rate=37_500), "tasks") == [5]


def capacity(rate: float, trials: int = 3, **fields: object) -> CellSummary:
    return cell_summary("postgres/jdbc", *[rate] * trials, mode="capacity", offered_records_per_second=rate, **fields)


def test_a_capacity_below_the_drain_lowers_the_curve_and_stands_for_one_that_is_missing() -> None:
    runs = (run(ONE, capacity(15_000)), run(ONE, capacity(90_000)), run({}, capacity(15_000)))
    assert [values(only(each, rate=30_000), "tasks") for each in runs] == [[6], [3], [6]]


def load(rate: float, p99: float | None = None, *, sustained: bool = True, trials: int = 3) -> CellSummary:
    wrong = {} if sustained else {"passed": False, "faults": [because("lag grows", ReasonCode.NOT_SUSTAINED)]}
    latency = None if p99 is None else LatencyMs(p99=p99, count=9_999)
    fields = {"mode": "sustain", "offered_records_per_second": rate, "latency_ms": latency, **wrong}
    return cell_summary("postgres/jdbc", *[rate] * trials, **fields)


# 15,000 are half of the 30,000 records/s that its tasks store.
@pytest.mark.parametrize(
    ("loads", "state", "said"),
    [
        ([load(15_000, 900)], "qualifies", ""),
        ([load(15_000, 1_000), load(10_000, 2)], "qualifies", ""),
        ([load(14_999, 900)], "not decided", "p99: no constant load of 15,000/s or more with 3 tasks (50 % of th"),
        ([load(15_000, 900, trials=2)], "not decided", "p99: no constant load"),
        ([load(15_000)], "not decided", "p99: no constant load"),
        ([], "not decided", "p99: no constant load"),
        # One that is heavier than what is asked may be too slow, one that is lighter may not.
        ([load(20_000, 1_001)], "not decided", "p99: 1,001 ms at 67 % of its capacity"),
        ([load(15_000, 1_001)], "fails", "p99: 1,001 ms at 50 % of its capacity"),
        ([load(10_000, 1_001)], "fails", "p99: 1,001 ms at 33 %"),
        ([load(14_000, sustained=False), load(16_000, 5)], "fails", "rate: 14,000 is not sustained (at 47 %"),
        ([load(16_000, sustained=False), load(15_000, 5)], "qualifies", ""),
    ],
)
def test_p99_is_that_of_a_constant_load_at_this_share_of_the_capacity(
    loads: Sequence[CellSummary], state: str, said: str
) -> None:
    # 3 tasks are needed, half of whose rate stays free.
    found = only(run(ONE, *loads), rate=15_000, headroom=0.5, p99_ms=1_000)
    assert found.state == state
    assert [text for text in (*found.fails, *found.unknown) if not text.startswith(said)] == []
    assert bool(said) == (state != "qualifies")
    if state == "qualifies":
        assert found.figures["p99_ms"].basis == "measured"


@pytest.mark.parametrize(("rate", "offer"), [(9_000, 27_000), (15_000, 22_500), (45_000, 27_000)])
def test_the_load_that_decides_is_to_the_raced_tasks_what_the_rate_is_to_those_that_it_needs(
    rate: float, offer: int
) -> None:
    assert only(run(ONE), rate=rate, p99_ms=1_000).offer == offer
    assert only(run(ONE, load(offer, 900)), rate=rate, p99_ms=1_000).unknown == []
    for drained in range(50_000, 50_100, 10):
        assert only(run(jdbc(*[drained] * 3), load(24_000, 900)), rate=8_000, p99_ms=1_000).unknown == []


@pytest.mark.parametrize(
    ("asked", "right", "state"),
    [
        ("all", (True, True), "qualifies"),
        ("all", (True, False), "fails"),
        ("all", (True, None), "not decided"),
        ("all", (), "not decided"),
        (1, (True, False), "qualifies"),
        (3, (True, True), "fails"),
        (0, (False,), "qualifies"),
    ],
)
def test_queries_are_those_that_an_index_answers(asked: int | str, right: tuple[bool | None], state: str) -> None:
    answered = [Query(query=f"q{n}", right=each, by_index=each) for n, each in enumerate(right)]
    assert only(run(ONE, queries=answered), queries=asked).state == state


def test_a_pipeline_that_loses_records_when_a_task_stops_does_not_qualify() -> None:
    kept = run(ONE)
    config = {"config": {"camel.aggregation.size": "500"}}
    aggregates = StoredRun(kept.summary, kept.trials, kept.plan, {"postgres/jdbc": config})
    assert only(aggregates).fails == ["loss: loses buffered records when a task stops"]


def test_a_pipeline_that_lost_records_without_a_fault_does_not_qualify_whatever_the_load_was() -> None:
    lossy = load(15_000, 5).model_copy(update={"audit": Audit(produced=9, stored=7, lost=2, duplicates=0)})
    assert only(run(ONE, lossy)).fails == ["loss: 2 records in these runs"]


def test_records_of_another_size_are_scaled_up_to_twice_and_marked() -> None:
    found = only(run(ONE), record_bytes=1_024)
    assert values(found, "tasks", "cores", "network_mb") == pytest.approx([4, 2 * 17 * 0.02, 22])
    assert [found.figures[name].basis for name in ("cores", "disk_gb_a_day")] == ["extrapolated"] * 2
    # A small record takes what a larger one does, but for disk and network.
    found = only(run(ONE), record_bytes=256)
    assert values(found, "tasks", "cores", "network_mb") == pytest.approx([2, 17 * 0.02, 5.5])
    for size in (1_025, 255):
        assert only(run(ONE), record_bytes=size).unknown[0].startswith("bytes: measured with records of 512 bytes")
    # Of two runs the one with records of the nearer size counts.
    assert values(only(run(ONE), run(jdbc(9_000, 9_000, 9_000), size=4_096), record_bytes=4_096), "tasks") == [7]


def test_too_few_trials_and_cells_that_are_not_final_are_told() -> None:
    (few,) = only(run(jdbc(30_000, 30_000))).unknown
    assert few == "rate: 2 final trials, 3 are needed: sinkbench race mine --trials 5"
    assert only(run(ONE, warm=False)).unknown[0].startswith("rate: not final: still warming")
    assert only(run({}, load(15_000, 5))).unknown == ["rate: no drain or capacity measured"]


def test_tasks_that_failed_in_larger_numbers_are_no_size() -> None:
    failed = cell_summary("postgres/jdbc", 1.0, tasks=6, invalid=["too many clients"])
    assert only(run(ONE, failed), rate=50_000).state == "qualifies"
    assert only(run(ONE, failed), rate=60_000).fails == ["tasks: 6 are needed, with 6: invalid: too many clients"]
    again = run(jdbc(60_000, 60_000, 60_000, tasks=6), name="newer")
    assert only(again, run(ONE, failed), rate=60_000).state == "qualifies"
    # A search that found no capacity does not make the drain's rate unknown.
    searched = cell_summary("postgres/jdbc", invalid=["no capacity"], mode="capacity", trials=1)
    assert only(run({}, searched), run(ONE)).state == "qualifies"
    assert only(run({}, searched)).unknown == ["rate: invalid: no capacity"]
    # The newer one decides, also if it failed.
    assert only(run({}, cell_summary("postgres/jdbc", 1.0, invalid=["x"])), run(ONE)).fails == ["rate: invalid: x"]


# Falling, since rates that rise from trial to trial are not final.
RATES = st.lists(st.floats(1_000, 1e5), min_size=3, max_size=6).map(lambda rates: sorted(rates, reverse=True))


@settings(max_examples=25, deadline=None)
@given(RATES, st.floats(100, 1e5), st.floats(0, 0.8))
def test_every_figure_lies_in_its_range_and_is_the_same_again(rates: list[float], rate: float, free: float) -> None:
    found, again = (only(run(jdbc(*rates)), rate=rate, headroom=free) for _ in range(2))
    assert found.figures == again.figures
    assert [each for each in found.figures.values() if not each.low <= each.value <= each.high] == []


@settings(max_examples=25, deadline=None)
@given(RATES, st.floats(100, 1e4), st.floats(1.1, 3))
def test_more_records_take_as_many_times_the_cores_and_never_fewer_tasks(
    rates: list[float], rate: float, times: float
) -> None:
    kept = run(jdbc(*rates))
    less, more = only(kept, rate=rate).figures, only(kept, rate=times * rate).figures
    assert more["cores"].value == pytest.approx(times * less["cores"].value)
    assert more["disk_gb_a_day"].value == pytest.approx(times * less["disk_gb_a_day"].value)
    assert more["tasks"].value >= less["tasks"].value


def test_trials_that_differ_give_a_range_and_equal_ones_give_none() -> None:
    found = only(run(jdbc(30_000, 30_000, 30_000)), rate=60_000).figures["tasks"]
    assert (found.low, found.value, found.high) == (6, 6, 6)
    found = only(run(jdbc(60_000, 30_000, 15_000)), rate=60_000).figures["tasks"]
    assert (found.low, found.value, found.high) == (3, 6, 12)


def test_a_heading_is_whole_where_no_pipeline_has_a_figure() -> None:
    asked = Asked(20_000)
    assert "Not decided" in lines(sizes(measured([run(jdbc(5, 5))], None), asked), asked, ["r"])


def test_the_page_has_40_lines_of_100_columns_for_any_number_of_pipelines() -> None:
    many = {a_cell(f"postgres/{'long-' * 12}{number}", 3, 1): (30_000, 29_000, 31_000) for number in range(50)}
    asked = Asked(20_000, p99_ms=500, queries="all", keep_days=30, record_bytes=1_000)
    found = sizes(measured([run(many)], 1_000), asked)
    told = lines(found, asked, ["r"] * 9)
    assert len(told) <= 40
    assert max(map(len, told)) <= 100
    assert [line for line in told if line.endswith("more: --json")] != []
    assert len(plain(found, asked, ["r"])["pipelines"]) == 50
    # A few are all there, those that need fewest cores first.
    few = sizes(measured([run(ONE), run({a_cell("elasticsearch/x", 3, 1): (9, 9, 9)})], None), Asked(20_000))
    told = lines(few, Asked(20_000), ["r"])
    assert [line for line in told if "more:" in line] == []
    assert [line.split()[0] for line in told if line.startswith("  postgres")] == ["postgres/jdbc"]


def predicted(raced: StoredRun, *sources: StoredRun) -> dict[str, Prediction]:
    found = predictions(measured(sources, None), measured([raced], None))
    return {f"{each.what} {each.cell.partition('@')[2]}": each for each in found}


THREE, SIX = jdbc(30_000, 29_000, 31_000), jdbc(50_000, 49_000, 51_000, tasks=6)


def test_more_tasks_are_predicted_by_the_last_slope_and_a_record_takes_as_much() -> None:
    found = predicted(run(jdbc(60_000, 59_000, 61_000, tasks=12), disk_bytes_per_record=500.0), run({**THREE, **SIX}))
    rate, cpu, disk = (found[f"{what} 1x12"] for what in (RATE, CPU_TIME, DISK))
    assert (rate.predicted.value, rate.measured.value, rate.predicted.times) == (90_000, 60_000, 2)
    assert (rate.error, rate.overlaps) == (pytest.approx(0.5), False)
    assert (cpu.error, cpu.overlaps) == (0, True)
    assert disk.error == pytest.approx(0.2)


@pytest.mark.parametrize(("measured_bytes", "raced_bytes", "rate"), [(512, 4_096, 3_750), (4_096, 512, 30_000)])
def test_larger_records_are_stored_as_many_times_more_slowly_and_smaller_ones_as_before(
    measured_bytes: int, raced_bytes: int, rate: float
) -> None:
    found = predicted(run(THREE, size=raced_bytes), run(THREE, size=measured_bytes))
    assert found[f"{RATE} 1x3"].predicted.value == rate
    assert found[f"{DISK} 1x3"].predicted.value == 600 * raced_bytes / measured_bytes


def loaded(rate: float, p99: float, cpu: float) -> CellSummary:
    used = {"kafka": 0.0, "connect": cpu, "postgres": 10.0, "controller": 50.0}
    return load(rate, p99).model_copy(update={"cell": f"jdbc@1x3@{rate:g}", "cpu_seconds_per_million": used})


def test_a_load_is_predicted_by_the_next_higher_one_and_its_cpu_time_by_those_around_it() -> None:
    others = run(THREE, loaded(2_000, 100, 99.0), loaded(12_000, 300, 99.0))
    found = predicted(run({}, loaded(8_000, 400, 24.0)), others)
    assert found[f"{P99} 1x3@8000"].error == pytest.approx(-0.25)
    assert found[f"{CPU_TIME} 1x3@8000"].error == pytest.approx(109 / 34 - 1)
    higher = predicted(run({}, loaded(16_000, 400, 24.0)), run(THREE, loaded(12_000, 300, 99.0)))
    assert list(higher) == [f"{CPU_TIME} 1x3@16000"]


@pytest.mark.parametrize(("rate", "cores"), [(60_000, 1.02), (30_000, 0.51), (3_000, 0.51), (1_500, 0.51)])
def test_cores_lie_between_those_of_constant_loads_and_of_the_drain_and_of_drains_alone_are_the_fewest(
    rate: float, cores: float
) -> None:
    # Three tasks use 0.51 cores at 30,000/s and at 3,000/s, and one that is enough for less saves none of them.
    kept = run({a_cell(multiple=3, workers=1): (30_000,) * 3}, loaded(3_000, 5, 160.0))
    found, asked = only(kept, rate=rate, headroom=0.0), Asked(rate, **ALONE)
    assert (found.loaded, values(found, "cores")) == (True, [pytest.approx(cores)])
    assert found.figures["cores"].times == pytest.approx({60_000: 2, 1_500: 2}.get(rate, 1))
    assert found.binds == "CPU (2 cores) at 117,647/s"
    drained = only(run({a_cell(multiple=3, workers=1): (30_000,) * 3}), rate=rate)
    assert f">={17 * rate / 1e6:.2f}" in "".join(lines([drained], asked, ["r"]))
    assert sizes([drained.measured, found.measured], asked)[0].loaded


def test_below_the_lowest_load_cores_fall_as_the_line_does_and_a_record_takes_no_less() -> None:
    kept = run(ONE, loaded(15_000, 5, 9.0), loaded(24_000, 5, 9.0))
    assert values(only(kept, rate=10_000, headroom=0.5), "cores") == [pytest.approx(0.19)]
    assert only(kept, rate=20_000, headroom=0.3).figures["cores"].basis == "within the measured"
    falling = run({**jdbc(10_000, 10_000, 10_000), **jdbc(6_000, 6_000, 6_000, tasks=6)}, loaded(3_000, 5, 90.0))
    assert values(only(falling, rate=8_000, may_fail=5, headroom=0.2), "cores")[0] >= 17 * 8_000 / 1e6


def test_workers_have_the_cores_that_connect_takes_under_load() -> None:
    kept = run({a_cell(multiple=3, workers=1): (30_000,) * 3}, loaded(3_000, 5, 160.0))
    assert values(only(kept, rate=3_000, cores_per_worker=0.1), "workers") == [5]
    assert values(only(run(ONE), rate=3_000, cores_per_worker=0.1), "workers") == [1]


def test_the_worst_prediction_of_each_figure_is_named_at_the_end() -> None:
    raced = {**jdbc(60_000, 59_000, 61_000, tasks=12), **jdbc(50_000, 49_000, 52_000, tasks=6)}
    lines = error_lines(list(predicted(run(raced), run({**THREE, **SIX})).values()))
    assert "90,000 (89,000-91,000) 2x  60,000 (59,000-61,000)  +50 %" in next(line for line in lines if "x12" in line)
    assert lines[-1].startswith(f"Furthest off: {RATE} +50 % (postgres/jdbc@1x12), {CPU_TIME} +0.0 %")


def test_a_pipeline_that_no_other_run_has_is_not_predicted() -> None:
    with pytest.raises(SizeError, match="nothing to compare: the run has postgres/jdbc, and no other run has a final"):
        predicted(run(THREE), run({}))
