"""Constant loads on the real stack: kept up with or not, how late records arrive, and a capacity that is known."""

from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from sinkbench.analysis.latency import BOUNDED, GROWING
from sinkbench.live.views import choose_ui
from sinkbench.plan.cells import expand
from sinkbench.plan.sizing import is_too_short
from sinkbench.race.race import Race
from sinkbench.race.resume import Journal
from sinkbench.results import RunSummary
from sinkbench.runs.store import RunFolder, read_trials
from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack
from sinkbench.tables.cells import render
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.workloads.drain import Pilot
from tests.e2e.onetrial import checkout_with
from tests.e2e.races import left_behind
from tests.support.trials import plan_in
from tests.support.undisturbed import undisturbed

PILOT = "drain: {compiling_percent: 100, pilot_seconds: 1, warm_up_seconds: 4, timeout_seconds: 60}\ntrials: 1\n"
KEPT_UP_WITH = """
mode: sustain
pipelines: [postgres/jdbc, elasticsearch/camel-bulk]
sustain: {records_per_second: 1000, seconds: 12}
"""
RATE = 4_000
# Rows leave a bucket that empties at a fixed rate, whatever the machine can do. The lock on its one row lasts until the
# commit, so all tasks share it; the time between two transactions, up to a tenth of a second, is made up for.
THROTTLED = f"""
CREATE TABLE throttle (free timestamptz NOT NULL);
INSERT INTO throttle VALUES (now());
CREATE FUNCTION throttled() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE until timestamptz;
BEGIN
    UPDATE throttle
    SET free = greatest(free, clock_timestamp() - interval '100 ms')
        + (SELECT count(*) FROM fresh) * interval '1 second' / {RATE}
    RETURNING free INTO until;
    PERFORM pg_sleep(greatest(extract(epoch FROM until - clock_timestamp()), 0));
    RETURN NULL;
END $$;
CREATE TRIGGER throttled AFTER INSERT ON tides REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION throttled();
"""  # noqa: S608 - of a number of ours
DELAY_MS = 300
DELAYED = f"""
CREATE FUNCTION delayed() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep({DELAY_MS / 1000}); RETURN NULL; END $$;
CREATE TRIGGER delayed BEFORE INSERT ON tides FOR EACH STATEMENT EXECUTE FUNCTION delayed();
"""


def race(stack: LocalStack, folder: Path, plan: str, schema: str = "", drain: str = "") -> RunSummary:
    """A run of that plan in a checkout whose table has something added to it."""
    checkout = checkout_with(folder / "checkout", (CHECKOUT / "postgres" / "schema.sql").read_text() + schema)
    loaded = plan_in(folder, plan + PILOT.replace("{", "{" + drain), checkout / "connectors").seeded()
    results = RunFolder.create(folder / "results", loaded, checkout / "connectors")
    cells = expand(loaded, stack.workers)
    with closing(Cluster(stack, loaded, checkout)) as bench, choose_ui(Console(soft_wrap=True)) as ui:
        summary = Race(bench, Journal(results, loaded, cells, {}), ui).run()
    if left := left_behind(stack):
        pytest.fail(f"left behind: {left}")
    for cell in summary.cells:
        if cell.audit is not None and not cell.audit.clean:
            pytest.fail(f"{cell.cell}: {cell.audit}")
    return summary


@pytest.mark.long
def test_a_load_that_is_kept_up_with_has_the_rate_that_is_offered_and_a_latency_for_each_record(
    stack: LocalStack, tmp_path: Path
) -> None:
    summary = undisturbed(lambda folder: race(stack, folder, KEPT_UP_WITH), tmp_path)
    jdbc, bulk = summary.cells
    for cell in (jdbc, bulk):
        assert cell.invalid == [], cell
        assert cell.audit.produced == 12_000
        latency = cell.latency_ms
        assert latency.count >= 5_000
        assert (latency.negative, latency.one_in) == (0, 1)
        assert 0 < latency.p50 <= latency.p99
    # A search finds a document at the next refresh: once a second, so half a second later than it is stored.
    assert jdbc.searchable_ms is None
    stored, found = bulk.latency_ms, bulk.searchable_ms
    assert stored.resolution_ms is not None
    assert found.p50 > stored.p50
    assert found.count == pytest.approx(stored.count, rel=0.02)
    text = render(summary)
    assert "limit of generator" in text
    assert "due until found by a search" in text
    assert jdbc.lag.verdict == BOUNDED, jdbc
    # The bulks of 500 that camel-bulk gathers make its lag rise and fall; so short a load need not tell.
    assert bulk.lag.verdict != GROWING, bulk
    # Between two instants, each of three tasks may just have stored its bulk of 500, or not yet.
    for cell, bunched in ((jdbc, 0), (bulk, 3 * 500 / 9)):
        assert cell.records_per_second.median == pytest.approx(1_000, abs=100 + bunched)


@pytest.mark.long
def test_further_groups_read_every_record_of_a_load(stack: LocalStack, tmp_path: Path) -> None:
    load = "sustain: {records_per_second: 1000, seconds: 10, readers: 2}"
    summary = race(stack, tmp_path, f"mode: sustain\npipelines: [postgres/jdbc]\n{load}\n")
    assert [(cell.readers, cell.audit.produced, cell.invalid) for cell in summary.cells] == [(2, 10_000, [])]
    *_, beside = read_trials(tmp_path / "results" / summary.run / "trials.jsonl")
    assert beside.read_by_readers == [10_000, 10_000]
    assert "further" in render(summary)


@pytest.mark.long
@pytest.mark.rare
def test_a_delay_that_is_known_is_in_every_latency(stack: LocalStack, tmp_path: Path) -> None:
    plan = "mode: sustain\npipelines: [postgres/jdbc]\nsustain: {records_per_second: 6, seconds: 20}\n"
    # So few that hardly any two go in one batch, which the driver would insert by several statements.
    (cell,) = undisturbed(lambda folder: race(stack, folder, plan, DELAYED), tmp_path).cells
    assert cell.invalid == [], cell
    latency = cell.latency_ms
    assert latency.p50 >= DELAY_MS
    assert latency.p50 < 2 * DELAY_MS


@pytest.mark.long
def test_a_load_that_the_generator_cannot_send_makes_the_trial_invalid(stack: LocalStack, tmp_path: Path) -> None:
    plan = "mode: sustain\npipelines: [postgres/jdbc]\nsustain: {records_per_second: 1000000, seconds: 10}\n"
    plan += "load: {record_bytes: 400}\n"
    (cell,) = race(stack, tmp_path, plan).cells
    assert not cell.passed
    assert any("generator was the limit" in reason for reason in cell.invalid), cell.invalid
    assert cell.latency_ms is None


@pytest.mark.long
@pytest.mark.rare
def test_the_capacity_of_a_throttled_sink_is_found(stack: LocalStack, tmp_path: Path) -> None:
    plan = "mode: capacity\npipelines: [postgres/jdbc]\ncapacity: {precision_percent: 20}\nsustain: {seconds: 14}\n"
    summary, trials = undisturbed(
        lambda folder: (race(stack, folder, plan, THROTTLED), read_trials(next(folder.glob("results/*/trials.jsonl")))),
        tmp_path,
    )
    (cell,) = summary.cells
    assert cell.passed, cell
    assert cell.offered_records_per_second == pytest.approx(RATE, rel=0.22)
    assert {step.outcome for step in cell.search} >= {BOUNDED, GROWING}
    assert cell.search[-1].confirms
    assert len(trials) == len(cell.search)
    for trial in trials:
        offered, lag = trial.offered_records_per_second, trial.lag
        if lag.verdict == GROWING and lag.growth_per_second is not None:
            # What is offered beyond the capacity is what the lag grows by.
            assert lag.growth_per_second == pytest.approx(offered - RATE, abs=0.1 * offered)
    assert "the search offered" in render(summary)


@pytest.mark.long
@pytest.mark.rare
def test_a_trial_that_a_slow_pilot_has_made_too_short_is_taken_again_with_more_records(
    stack: LocalStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the workers' JVMs had been cold, or the machine busy, in all of the pilot.
    monkeypatch.setattr("sinkbench.race.pilots.take_pilot", lambda trial, seconds_left: Pilot(1.0))
    (cell,) = race(stack, tmp_path, "pipelines: [postgres/jdbc]\n", drain="window_seconds: 6, ").cells
    assert cell.passed, cell
    assert cell.trials == 1
    *short, taken = read_trials(next((tmp_path / "results").glob("*/trials.jsonl")))
    assert 1 <= len(short) <= 3
    for trial in short:
        assert trial.pilot
        # So few may be gone before the last task has started.
        assert is_too_short(trial, 6)
        assert taken.records > trial.records
    assert not taken.pilot


@pytest.mark.long
@pytest.mark.rare
def test_queries_beside_a_load_have_latencies_idle_and_loaded(stack: LocalStack, tmp_path: Path) -> None:
    plan = f"""
mode: sustain
queries: {CHECKOUT / "queries"}
pipelines: [postgres/jdbc]
sustain: {{records_per_second: 500, reads_per_second: [20], seconds: 10}}
"""
    (beside,) = undisturbed(lambda folder: race(stack, folder, plan), tmp_path).cells
    assert beside.reads_per_second == 20
    assert (beside.reads.failed, beside.reads.problem) == (0, "")
    for latency in (beside.reads.loaded_ms, beside.reads.idle_ms):
        # As many as were due, but for those of the last moment.
        assert latency.count >= 150
