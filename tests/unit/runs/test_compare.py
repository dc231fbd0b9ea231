"""Two runs compared: verdicts that hold for the whole table, and reasons where there is no verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import JsonValue

from sinkbench.errors import ResultsError
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan
from sinkbench.results import Audit, Durability, LatencyMs, PlanRef, TrialRecord
from sinkbench.runs.compare import CPU, Compared, compare
from sinkbench.runs.differences import record_differences
from sinkbench.runs.gate import gate, percent_of
from sinkbench.runs.reader import StoredRun
from sinkbench.summary.cells import summarize
from sinkbench.tables.comparison import as_text, compared
from tests.support.counts import count as how_many
from tests.support.present import present
from tests.support.trials import JDBC as CELL
from tests.support.trials import OTHER as BULK
from tests.support.trials import run_summary
from tests.support.trials import trial as drained

TABLES = how_many(100, 20)
CELLS = [CELL, BULK, replace(CELL, multiple=2), replace(BULK, multiple=2)]
FAST = [1030.0, 1000.0, 1010.0, 1020.0, 1015.0, 1005.0]
SLOW = [rate * 0.8 for rate in FAST]


def trial(cell: Cell, block: int, rate: float | None, **fields: object) -> TrialRecord:
    return drained(rate, cell, **{"block": block, "offered_records_per_second": cell.offered, **fields})


def kept(
    rates: Mapping[Cell, Sequence[float | None]],
    environment: Mapping[str, JsonValue] | None = None,
    connectors: Mapping[str, JsonValue] | None = None,
    plan: Mapping[str, object] | None = None,
    **fields: object,
) -> StoredRun:
    """A run whose cells have these rates, one a block."""
    trials = [trial(cell, block, rate, **fields) for cell in rates for block, rate in enumerate(rates[cell], start=1)]
    pipelines = list(dict.fromkeys(cell.pipeline for cell in rates)) or ["postgres/jdbc"]
    summary = run_summary(
        *summarize(list(rates), trials),
        plan=PlanRef(name="quick", sha256="0"),
        environment={"stack": "local", **(environment or {})},
    )
    whole = Plan.model_validate({"name": "quick", "pipelines": pipelines, **(plan or {})}).whole()
    return StoredRun(summary, trials, whole, connectors or {})


def only(a: StoredRun, b: StoredRun) -> Compared:
    (cell,) = compare(a, b).cells
    return cell


def noisy(draw: np.random.Generator, count: int, factor: float = 1.0, spread: float = 0.025) -> list[float]:
    return (factor * draw.normal(1000, 1000 * spread, count)).tolist()


@pytest.fixture
def verdicts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out what no verdict depends on and what takes most of the time, for tests that compare many runs."""
    monkeypatch.setattr("sinkbench.runs.compare.intervals.smallest_difference", lambda *of, paired: 0.1)
    monkeypatch.setattr("sinkbench.metrics.rate.interval_of_median", lambda *of: None)
    monkeypatch.setattr("sinkbench.metrics.limit.ratio_of", lambda *of: None)


@pytest.mark.long
@pytest.mark.usefixtures("verdicts_alone")
@pytest.mark.parametrize("count", [6, 12])
def test_two_runs_of_the_same_pipelines_differ_in_one_of_twenty_tables_at_most(count: int) -> None:
    draw = np.random.default_rng(count)
    none = 0
    for _ in range(TABLES):
        a, b = (kept({cell: noisy(draw, count) for cell in CELLS}) for _ in range(2))
        none += not any(cell.verdict in ("faster", "slower") for cell in compare(a, b).cells)
    # Three standard errors of a share of 0.95.
    assert none / TABLES >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / TABLES)


@pytest.mark.usefixtures("verdicts_alone")
@pytest.mark.parametrize(("count", "spread"), [(5, 0.02), (10, 0.03)])
def test_a_copy_that_is_10_percent_slower_is_found_at_2_to_3_percent_noise(count: int, spread: float) -> None:
    draw = np.random.default_rng(count)
    found = 0
    for _ in range(40):
        a, b = noisy(draw, count, spread=spread), noisy(draw, count, 0.9, spread)
        found += only(kept({CELL: a}), kept({CELL: b})).verdict == "slower"
    assert found >= 38


def test_what_a_foreign_load_can_explain_is_no_verdict() -> None:
    machine: dict[str, JsonValue] = {"cpu_count": 2}
    quiet = kept({CELL: FAST}, machine, foreign_cores=0.02)
    disturbed = kept({CELL: SLOW}, machine, foreign_cores=0.5)
    unsure = only(quiet, disturbed)
    assert unsure.verdict == "cannot tell"
    assert unsure.why.startswith("other load took 0.0 cores in run A, 0.5 cores in run B")
    assert "cannot tell" in as_text(compared(compare(quiet, disturbed)))
    # It is no proof that B is slower, and none that it is not.
    found = gate(compare(quiet, disturbed), 5.0)
    assert (found.failures, len(found.inconclusive), found.remarks) == ([], 1, [])
    # The difference that explains it stands first.
    first, *_ = compare(quiet, disturbed).differences
    assert first.in_words == "postgres/jdbc@3x1 foreign load was 0.0 cores, is 0.5 cores"
    # The other way round B was faster in spite of it, and the same load in both explains nothing.
    slow = kept({CELL: SLOW}, machine, foreign_cores=0.0)
    assert only(slow, kept({CELL: FAST}, machine, foreign_cores=0.5)).verdict == "faster"
    assert only(disturbed, slow).why.endswith("may hide a difference")
    same = only(kept({CELL: FAST}, machine, foreign_cores=0.5), disturbed)
    assert (same.verdict, same.why) == ("slower", "")


def test_what_stalls_can_explain_is_no_verdict() -> None:
    smooth = kept({CELL: FAST}, stalled_seconds=0.0, window_seconds=20.0)
    frozen = kept({CELL: SLOW}, stalled_seconds=4.0, window_seconds=20.0)
    unsure = only(smooth, frozen)
    assert unsure.verdict == "cannot tell"
    assert unsure.why.startswith("no new record was seen for 0.0 % in run A, 20 % in run B")
    assert gate(compare(smooth, frozen), 5.0).inconclusive
    first, *_ = compare(smooth, frozen).differences
    assert first.in_words == "postgres/jdbc@3x1 no new record seen, of a drain was 0.0 %, is 20 %"
    # One stall among six trials moves no median.
    once = kept({CELL: SLOW}, stalled_seconds=0.0, window_seconds=20.0)
    once.trials[0] = once.trials[0].model_copy(update={"stalled_seconds": 4.0})
    assert only(smooth, once).verdict == "slower"
    assert compare(smooth, once).differences == []
    # Of a run that did not look nothing is known, not 0.
    assert only(kept({CELL: FAST}, window_seconds=20.0), frozen).verdict == "slower"


def test_a_verdict_says_how_b_does_and_never_contradicts_its_interval() -> None:
    slower = only(kept({CELL: FAST}), kept({CELL: SLOW}))
    assert (slower.verdict, slower.ratio, slower.why) == ("slower", pytest.approx(0.8), "")
    assert present(slower.interval).high < 1
    assert (slower.a, slower.b) == (pytest.approx(1012.5), pytest.approx(810))
    assert only(kept({CELL: SLOW}), kept({CELL: FAST})).verdict == "faster"
    same = only(kept({CELL: FAST}), kept({CELL: FAST[::-1]}))
    assert same.verdict == "no difference found"
    assert 1 < present(same.smallest_percent) < 4


def test_what_one_cell_alone_would_show_may_be_chance_among_many() -> None:
    # Of 5 trials against 5 that do not overlap p is 2/252; eight such tests at once make it 0.06.
    barely = {CELL: [1000.0, 1001.0, 1002.0, 1003.0, 1004.0]}
    below = {CELL: [990.0, 991.0, 992.0, 993.0, 994.0]}
    assert only(kept(barely), kept(below)).verdict == "slower"
    others = {replace(BULK, multiple=multiple): FAST for multiple in range(1, 8)}
    cell = compare(kept({**barely, **others}), kept({**below, **others})).cells[0]
    assert cell.verdict == "too few trials to tell"
    assert cell.why == "5 and 5 valid trials are too few to test 8 cells at once"


@pytest.mark.long
def test_an_interval_that_alone_leaves_out_1_is_explained() -> None:
    near = {CELL: [1000.0, 1001.0, 1002.0, 1003.0, 1004.0, 1005.0, 1006.0]}
    below = {CELL: [992.0, 993.0, 994.0, 995.0, 996.0, 1001.5, 1002.5]}
    others = {replace(BULK, multiple=multiple): FAST for multiple in range(1, 16)}
    cell = compare(kept({**near, **others}), kept({**below, **others})).cells[0]
    assert cell.verdict == "no difference found"
    assert present(cell.interval).high < 1
    assert cell.why.startswith("interval and test of 16 cells at once do not agree (p 0.0")


@pytest.mark.parametrize(("taken", "said"), [([1000.0], "1 valid in run B"), (FAST[:4], "4 valid in run B")])
def test_fewer_than_five_valid_trials_tell_nothing(taken: list[float | None], said: str) -> None:
    cell = only(kept({CELL: FAST}), kept({CELL: taken}))
    assert (cell.verdict, cell.interval) == ("too few trials to tell", None)
    assert cell.why.startswith(f"{said}, 5 are needed in each; the ranges overlap: A 1,000 to 1,030, B 1,000 to 1,0")
    assert compare(kept({CELL: FAST}), kept({CELL: taken})).undecided
    apart = only(kept({CELL: FAST}), kept({CELL: [(rate or 0) / 2 for rate in taken]}))
    assert "; the ranges lie apart: A 1,000 to 1,030, B 500 to 5" in apart.why


def test_invalid_trials_are_left_out() -> None:
    b = kept({CELL: SLOW})
    bad = trial(CELL, 99, 9e9, invalid=["the machine slept"])
    assert only(kept({CELL: FAST}), replace(b, trials=[*b.trials, bad])).ratio == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"pipeline": "postgres/jdbc-tuned"}, "pipeline postgres/jdbc against postgres/jdbc-tuned"),
        ({"form": "row-schema"}, "form document against row-schema"),
        ({"acks": "1"}, "acks all against 1"),
    ],
)
def test_another_cell_is_not_comparable(changes: dict[str, Any], why: str) -> None:
    assert only(kept({CELL: FAST}), kept({replace(CELL, **changes): SLOW})).why == why


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"plan": {"load": {"record_bytes": 1024}}}, "record_bytes 512 against 1024"),
        ({"plan": {"load": {"keys": 1}}}, "keys 10000 against 1"),
        ({"plan": {"load": {"partitions": 48}}}, "partitions 24 against 48"),
        ({"plan": {"load": {"compression": "zstd"}}}, "compression none against zstd"),
        ({"plan": {"pipelines": [{"pipeline": "postgres/jdbc", "probes": False}]}}, "probes True against False"),
        ({"environment": {"stack": "compose"}}, "stack local against compose"),
        ({"audit": Audit(produced=100, stored=99, lost=1, duplicates=0)}, "run B: LOST 6"),
    ],
)
def test_another_load_stack_or_a_loss_is_not_comparable(other: dict[str, Any], why: str) -> None:
    cell = only(kept({CELL: FAST}), kept({CELL: SLOW}, **other))
    assert (cell.verdict, cell.why) == ("not comparable", why)


def test_another_durability_of_kafka_is_not_comparable() -> None:
    flushed: list[dict[str, JsonValue]] = [
        {"durability": {"kafka": {"log.flush.interval.messages": each}}} for each in ("9223372036854775807", "1")
    ]
    why = "durability kafka log.flush.interval.messages 9223372036854775807 against 1"
    assert only(*(kept({CELL: rates}, each) for rates, each in zip((FAST, SLOW), flushed, strict=True))).why == why
    assert only(kept({CELL: FAST}), kept({CELL: SLOW}, flushed[0])).verdict == "slower"
    sent = [Durability(kafka=f"acks all, {each} of 3 in sync") for each in (3, 1)]
    found = only(*(kept({CELL: FAST}, durability=each) for each in sent))
    assert found.why == "durability of a sent record acks all, 3 of 3 in sync against acks all, 1 of 3 in sync"


def test_another_promise_of_the_sink_is_not_comparable() -> None:
    settings = {"synchronous_commit": "on", "synchronous_standby_names": "*"}
    on = Durability(text="2 nodes, disk", nodes=2, on_disk=2, settings=settings)
    off = Durability(text="1 node, memory (0.6 s)", settings={**settings, "synchronous_commit": "off"})
    assert only(kept({CELL: FAST}, durability=on), kept({CELL: SLOW}, durability=off)).why == (
        "durability synchronous_commit on against off;"
        " durability of a stored record 2 nodes, disk against 1 node, memory (0.6 s)"
    )
    assert only(kept({CELL: FAST}, durability=on), kept({CELL: SLOW}, durability=on)).verdict == "slower"
    assert only(kept({CELL: FAST}), kept({CELL: SLOW}, durability=off)).verdict == "slower"


def test_what_differs_besides_the_figures_is_listed() -> None:
    a = kept(
        {CELL: FAST},
        {"cpu_count": 2, "versions": {"kafka": "4.3.1", "java": None}},
        {"postgres/jdbc": {"config": {"batch.size": "500", "connection.password": "a", "x.url": "pg://me:pw@h/d"}}},
    )
    b = kept(
        {CELL: FAST},
        {"cpu_count": 4, "versions": {"kafka": "4.4.0"}},
        {"postgres/jdbc": {"config": {"batch.size": "900", "connection.password": "b", "x.url": "pg://me:wp@i/d"}}},
        {"seed": 9, "trials": 7, "pipelines": [{"pipeline": "postgres/jdbc", "overrides": {"batch.size": 9}}]},
    )
    assert [(each.what, each.a, each.b) for each in compare(a, b).differences] == [
        ("environment cpu_count", "2", "4"),
        ("environment versions.kafka", "4.3.1", "4.4.0"),
        ("plan trials", "3", "7"),
        ("plan pipelines postgres/jdbc overrides.batch.size", "(none)", "9"),
        ("connectors postgres/jdbc config.batch.size", "500", "900"),
        ("connectors postgres/jdbc config.connection.password", "(not shown)", "(not shown)"),
        ("connectors postgres/jdbc config.x.url", "pg://me:***@h/d", "pg://me:***@i/d"),
    ]


@pytest.mark.parametrize(("text", "percent"), [("5%", 5), ("5", 5), (" 2.5 %", 2.5), ("0", 0)])
def test_a_share_is_read_with_and_without_its_sign(text: str, percent: float) -> None:
    assert percent_of(text, "--fail-if-slower") == percent


@pytest.mark.parametrize("text", ["", "%", "five", "-1", "100", "nan", "5%%"])
def test_anything_else_is_no_share(text: str) -> None:
    with pytest.raises(ResultsError, match="is not a share from 0 % to below 100 %; give one as 5%"):
        percent_of(text, "--fail-if-cpu-higher")


def test_the_gate_fails_where_a_cell_no_longer_passes_and_names_what_it_could_not_compare() -> None:
    assert gate(compare(kept({}), kept({})), 5).failures == ["nothing was compared by rate: no cell is comparable"]
    broken = compare(kept({CELL: FAST, BULK: FAST}), kept({CELL: FAST, BULK: []}))
    assert gate(broken, 5).failures == ["passed in run A and not in run B: elasticsearch/camel-bulk@3x1"]
    few = gate(compare(kept({CELL: FAST, BULK: FAST}), kept({CELL: FAST, BULK: FAST[:3]})), 5)
    assert (few.failures, few.remarks[-1]) == ([], "not compared, the table says why: elasticsearch/camel-bulk@3x1")


def updated(run: StoredRun, fields: Sequence[dict[str, Any]]) -> StoredRun:
    """The run with these fields of its trials."""
    return replace(run, trials=[each.model_copy(update=of) for each, of in zip(run.trials, fields, strict=True)])


def costing(seconds: Sequence[float], rates: Sequence[float] = FAST, **also: float | None) -> StoredRun:
    """A run of one cell whose trials took so many CPU seconds a million records, of Connect and PostgreSQL together."""
    costs = [{"connect": each / 4, "postgres": 3 * each / 4, "controller": 9.0, **also} for each in seconds]
    return updated(kept({CELL: rates}), [{"cpu_seconds_per_million": cost} for cost in costs])


CHEAP = [43.3, 43.4, 43.9, 43.5, 43.2, 43.6]
DEAR = [each * 1.1 for each in CHEAP]


def test_cpu_time_tells_what_rates_that_scatter_do_not() -> None:
    found = compare(costing(CHEAP, [1000.0, 1300.0, 800.0, 1100.0, 950.0, 1250.0]), costing(DEAR))
    (cost,) = found.by[CPU]
    assert found.cells[0].verdict == "no difference found"
    assert (cost.verdict, cost.a, cost.ratio) == ("more CPU", pytest.approx(43.45), pytest.approx(1.1))
    assert compare(costing(DEAR), costing(CHEAP)).by[CPU][0].verdict == "less CPU"
    assert compare(costing(CHEAP), costing(CHEAP)).by[CPU][0].verdict == "no difference found"


def test_what_one_run_did_not_measure_is_not_compared() -> None:
    (disk,) = compare(*(kept({CELL: FAST}, disk_bytes_per_record=each) for each in (410.0, None))).by["bytes/record"]
    assert (disk.verdict, disk.b, disk.why) == ("not comparable", None, "the bytes on disk were not measured in run B")


def test_latencies_under_a_constant_load_are_compared() -> None:
    def at(p99: float) -> StoredRun:
        cell = replace(CELL, mode="sustain", offered=5_000.0)
        run = kept({cell: FAST}, plan={"mode": "sustain", "sustain": {"records_per_second": 5_000}})
        late = [LatencyMs(p50=5.0, p99=p99 + place / 10, count=9) for place in range(len(FAST))]
        return updated(run, [{"latency_ms": each} for each in late])

    found = compare(at(20), at(40))
    assert [found.by[name][0].verdict for name in ("p50 ms", "p99 ms")] == ["no difference found", "longer"]
    assert "p95 ms" not in found.by
    assert compare(at(40), at(20)).by["p99 ms"][0].verdict == "shorter"


def test_probes_cost_no_pipeline_anything_and_a_service_unseen_makes_the_cost_unknown() -> None:
    (cost,) = compare(costing(CHEAP, controller=1.0), costing(CHEAP, controller=99.0)).by[CPU]
    assert cost.ratio == 1
    assert CPU not in compare(costing(CHEAP, kafka=None), costing(CHEAP, kafka=None)).by
    (cost,) = compare(costing(CHEAP), costing(CHEAP, kafka=None)).by[CPU]
    assert (cost.verdict, cost.b) == ("not comparable", None)
    assert cost.why == "the CPU time of a service was not seen in run B"


def of_records(sha256: str, name: str) -> StoredRun:
    facts = {
        "source": name, "sha256": sha256 * 32, "records": 1, "bytes": 2, "whole": True, "smallest_bytes": 2,
        "median_bytes": 2, "p95_bytes": 2, "largest_bytes": 2, "with_key": 0,
    }  # fmt: skip
    return kept({CELL: FAST}, {"records": facts}, plan={"load": {"records": name}})


def test_records_of_your_own_are_alike_if_their_digests_are() -> None:
    one = of_records("ab", "orders.ndjson")
    assert record_differences(one, of_records("ab", "orders.ndjson.gz")) == []
    (other,) = record_differences(one, of_records("cd", "orders.ndjson"))
    assert (other.what, other.a, other.b) == ("records", "sha256 abababababab", "sha256 cdcdcdcdcdcd")
    assert "records" in [each.what for each in record_differences(one, kept({CELL: FAST}))]


def replicated(said: int | None, became: int) -> StoredRun:
    environment: dict[str, JsonValue] = {"durability": {"kafka": {"replication": became}}}
    return kept({CELL: FAST}, environment, plan={"load": {"replication": said}})


def test_replicas_that_a_plan_leaves_to_the_topology_are_those_that_its_topic_had() -> None:
    assert record_differences(replicated(1, 1), replicated(None, 1)) == []
    (other,) = record_differences(replicated(1, 1), replicated(None, 3))
    assert (other.what, other.a, other.b) == ("replication", "1", "3")
