"""A run from its beginning to its end, on a cluster without services."""

from pathlib import Path
from typing import Any

import pytest

from sinkbench.analysis.latency import BOUNDED, GROWING
from sinkbench.errors import ReasonCode, ServiceError
from sinkbench.limits.measure import LimitJob
from sinkbench.limits.tune import Measured, Point, Tuned
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.plan.schedule import cells_left
from sinkbench.race.pilots import is_warm, share_of
from sinkbench.race.race import Race
from sinkbench.race.resume import Journal
from sinkbench.results import Limit, LimitStep, RunSummary, TrialRecord
from sinkbench.runs.store import RunFolder, read_summary, read_trials
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import SinkSettings
from sinkbench.trial.observer import Observer
from sinkbench.trial.workloads.drain import Pilot
from tests.support.fakecluster import FakeCluster, FakeSink, Quiet
from tests.support.trials import plan_of


def plan(**keys: object) -> Plan:
    return plan_of(**{"pipelines": ["postgres/jdbc", "elasticsearch/camel-bulk"], "trials": 2, "seed": 1, **keys})


def race(cluster: FakeCluster, results: Path, earlier: Any = ()) -> tuple[RunSummary, Quiet, RunFolder]:
    folder = RunFolder.create(results, cluster.plan, CHECKOUT / "connectors")
    ui = Quiet()
    journal = Journal(folder, cluster.plan, expand(cluster.plan, 3), {}, *earlier)
    return Race(cluster, journal, ui).run(), ui, folder


class Interrupted(FakeCluster):
    """Is left before the audit after the second."""

    audits = 2

    def audit(self) -> None:
        if self.calls.count("audit") == self.audits:
            raise KeyboardInterrupt
        super().audit()


def interrupted(cluster: FakeCluster, results: Path) -> tuple[list[TrialRecord], list[Limit]]:
    """The trials and limits that are kept of a run that somebody interrupts."""
    with pytest.raises(KeyboardInterrupt):
        race(cluster, results)
    assert cluster.there == set()
    folder = RunFolder((results / "latest").resolve())
    kept = read_summary(folder.path)
    assert not kept.complete
    return read_trials(folder.trials_path), kept.limits


def test_every_cell_has_a_pilot_and_its_trials_and_nothing_is_left(tmp_path: Path) -> None:
    cluster = FakeCluster(plan())
    summary, ui, folder = race(cluster, tmp_path)
    assert (summary.complete, summary.passed) == (True, True)
    assert [cell.trials for cell in summary.cells] == [2, 2]
    assert [step.kind for step in ui.steps] == ["pilot"] * 2 + ["trial"] * 4
    assert [(step.number, step.total) for step in ui.steps] == [(number, 4) for number in (0, 0, 1, 2, 3, 4)]
    assert cluster.there == set()
    assert read_summary(folder.path) == summary
    assert len(read_trials(folder.trials_path)) == 4


def test_a_trial_that_was_too_short_is_taken_again_with_more_records(tmp_path: Path) -> None:
    class WarmsUp(FakeCluster):
        """Is fifty times as fast in trials as it was in its pilot."""

        def load(self, names, *what, **how):  # type: ignore[no-untyped-def]
            self.rate = 1_000.0 if names.trial.endswith("pilot") else 50_000.0
            return super().load(names, *what, **how)

    summary, ui, folder = race(WarmsUp(plan(pipelines=["postgres/jdbc"])), tmp_path)
    *short, first, _ = read_trials(folder.trials_path)
    assert short
    assert all(trial.pilot and trial.reasons[0].code == ReasonCode.TOO_SHORT for trial in short)
    assert not first.pilot
    assert first.records > short[-1].records
    assert summary.cells[0].trials == 2
    assert any("sized by too low a rate" in line for line in ui.lines)


def test_an_interrupted_run_keeps_its_trials_and_is_taken_up_again(tmp_path: Path) -> None:
    earlier = interrupted(Interrupted(plan()), tmp_path)
    assert len(earlier[0]) == 2
    summary, ui, _ = race(FakeCluster(plan()), tmp_path, earlier)
    assert (summary.complete, [cell.trials for cell in summary.cells]) == (True, [2, 2])
    assert sum(step.kind == "trial" for step in ui.steps) == 2


def test_cells_with_variables_are_measured_on_the_stack_that_has_them(tmp_path: Path) -> None:
    arms = plan(arms={"small": {"variables": {"CONNECT_HEAP": "256m"}}, "usual": {}})
    cluster, small = FakeCluster(arms), FakeCluster(arms)
    cluster.siblings = {(("CONNECT_HEAP", "256m"),): small}
    summary, ui, _ = race(cluster, tmp_path)
    assert [cell.variables for cell in summary.cells] == [{"CONNECT_HEAP": "256m"}] * 2 + [{}] * 2
    assert [cell.trials for cell in summary.cells] == [2] * 4
    assert [step.kind for step in ui.steps] == ["pilot"] * 4 + ["trial"] * 8
    assert cluster.calls.count("audit") == small.calls.count("audit") == 4
    assert cluster.there == small.there == set()


def test_what_was_started_again_is_warmed_up_if_that_can_be(tmp_path: Path) -> None:
    class Dies(FakeCluster):
        """Finds a worker dead after the first trial, and Kafka as soon as the pilots' topic is loaded again."""

        def load(self, names, *what, **how):  # type: ignore[no-untyped-def]
            loaded = super().load(names, *what, **how)
            if names.trial.endswith("pilot") and self.calls.count("audit") == 1:
                self.dead = ["kafka"]
                raise ServiceError("no broker answers")
            return loaded

        def audit(self) -> None:
            if "audit" not in self.calls:
                self.dead = ["connect-2"]
            super().audit()

    cluster = Dies(plan(pipelines=["postgres/jdbc"]))
    summary, ui, _ = race(cluster, tmp_path)
    assert (summary.complete, [cell.trials for cell in summary.cells]) == (True, [2])
    assert any("no broker answers" in line for line in ui.lines), ui.lines
    assert "starting connect-2 again" in ui.lines
    assert [step.kind for step in ui.steps] == ["pilot", "trial", "trial"]
    assert cluster.there == set()


def test_a_search_ends_near_what_the_sink_stores_and_calibrates_the_generator(tmp_path: Path) -> None:
    keys = {"mode": "capacity", "pipelines": ["postgres/jdbc"], "trials": 1}
    cluster = FakeCluster(plan(**keys, sustain={"seconds": 20}, capacity={"precision_percent": 10}))
    summary, ui, _ = race(cluster, tmp_path)
    assert [(limit.sink, limit.records_per_second) for limit in summary.limits] == [("generator", 100_000)]
    (cell,) = summary.cells
    assert (cell.offered_records_per_second, cell.search[-1].confirms) == (pytest.approx(1_000, rel=0.2), True)
    assert any(line.endswith("confirmed") for line in ui.lines)


def test_shares_of_the_capacity_are_offered_once_it_is_found_and_a_run_passes_if_more_is_not_sustained(
    tmp_path: Path,
) -> None:
    keys = {"mode": "capacity", "pipelines": ["postgres/jdbc"], "trials": 2, "sustain": {"seconds": 20}}
    wanted = plan(**keys, capacity={"precision_percent": 10, "of_capacity": [0.5, 1.4]})
    summary, _, folder = race(FakeCluster(wanted), tmp_path)
    capacity, half, more = summary.cells
    assert [cell.of_capacity for cell in summary.cells] == [None, 0.5, 1.4]
    assert half.offered_records_per_second == pytest.approx(capacity.offered_records_per_second / 2, abs=0.1)
    assert [cell.trials for cell in summary.cells] == [2, 2, 2]
    assert (half.lag.verdict, more.lag.verdict) == (BOUNDED, GROWING)
    assert (more.passed, summary.passed) == (False, True)
    cells, trials = expand(wanted, 3), read_trials(folder.trials_path)
    shares = [trial for trial in trials if trial.of_capacity is not None]
    assert [trial.block for trial in shares] == [1, 1, 2, 2]
    # A run that is interrupted in its shares goes on with them.
    assert cells_left(wanted, cells, trials, summary.limits) == []
    kept = [trial for trial in trials if trial is not shares[-1]]
    assert [cell.key for cell in cells_left(wanted, cells, kept, summary.limits)] == [shares[-1].cell]
    assert cells_left(wanted, cells, trials[:1], summary.limits) == cells


def test_pilots_go_round_until_the_jvms_have_stopped_compiling(tmp_path: Path) -> None:
    cluster = FakeCluster(plan())
    # While the first three connectors run.
    cluster.compiling = lambda: 0.5 if cluster.calls.count("start") <= 3 else 0.0
    summary, ui, folder = race(cluster, tmp_path)
    # The second cell is warm at its second visit, the first one at its third.
    assert [step.kind for step in ui.steps].count("pilot") == 5
    assert all(cell.at_least is None for cell in summary.cells)
    assert [trial.warm for trial in read_trials(folder.trials_path)] == [True] * 4


def test_a_machine_that_never_becomes_warm_ends_and_no_rate_is_quoted(tmp_path: Path) -> None:
    cluster = FakeCluster(plan(drain={"warm_up_seconds": 0.1, "warm_up_budget_seconds": 0.5}))
    cluster.compiling = lambda: 0.5
    summary, ui, folder = race(cluster, tmp_path)
    assert summary.complete
    for cell in summary.cells:
        assert (cell.passed, cell.at_least.code, cell.ratio) == (True, ReasonCode.NOT_WARM, None)
    assert any(trial.replaces for trial in read_trials(folder.trials_path))
    assert any("warming up takes longer here" in line for line in ui.lines)


def test_trials_that_were_not_warm_are_replaced_at_the_end_in_blocks_of_their_own(tmp_path: Path) -> None:
    cluster = FakeCluster(plan(trials=3, drain={"warm_up_seconds": 0.1}))
    # All trials of the first block, and one of the second, compile.
    cluster.compiling = lambda: 0.5 if cluster.calls.count("audit") < 3 else 0.0
    summary, ui, folder = race(cluster, tmp_path)
    assert [(cell.trials, cell.at_least) for cell in summary.cells] == [(3, None)] * 2
    taken = read_trials(folder.trials_path)
    # First the cell with one warm trial of three, then both.
    assert [trial.block for trial in taken] == [1, 1, 2, 2, 3, 3, 4, 5, 5]
    assert [trial.pilot for trial in taken] == [True] * 3 + [False] * 6
    assert {trial.replaces for trial in taken[6:]} == {trial.trial for trial in taken[:3]}
    assert {step.total for step in ui.steps} == {6}
    assert [step.number for step in ui.steps if step.kind == "trial"] == [1, 2, 3, 4, 5, 6, 0, 0, 0]


def test_a_run_that_is_interrupted_in_its_replacements_goes_on_with_them(tmp_path: Path) -> None:
    keys = {"drain": {"warm_up_seconds": 0.1}}
    cold = Interrupted(plan(**keys))
    cold.audits = 5
    cold.compiling = lambda: 0.5 if cold.calls.count("audit") < 2 else 0.0
    earlier = interrupted(cold, tmp_path)
    assert [trial.replaces is not None for trial in earlier[0]] == [False] * 4 + [True]
    summary, ui, _ = race(FakeCluster(plan(**keys)), tmp_path, earlier)
    assert [(cell.trials, cell.at_least) for cell in summary.cells] == [(2, None)] * 2
    assert [step.kind for step in ui.steps] == ["pilot", "trial"]


class FakeLimits:
    """Two ways to write and one to read, without clients; each measurement in a block stores a little more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, interrupts: int | None = None, *more: tuple[str, str]) -> None:
        self.searched: list[str] = []
        self.measured: list[str] = []
        self._interrupts = interrupts
        self._ways = [("postgres", "COPY"), ("elasticsearch", "bulk"), *more]
        monkeypatch.setattr("sinkbench.race.pilots.jobs", lambda *_: self.jobs())

    def jobs(self) -> list[LimitJob]:
        kafka = LimitJob("kafka", "consumer group", lambda observer: self._search("consumer group", 0))
        return [kafka, *(self._job(sink, way) for sink, way in self._ways)]

    def _job(self, sink: str, way: str) -> LimitJob:
        def again(point: Point, observer: Observer) -> Measured:
            if len(self.measured) == self._interrupts:
                raise KeyboardInterrupt
            self.measured.append(way)
            return Measured(2_000.0 + len(self.measured))

        return LimitJob(sink, way, lambda observer: self._search(way, 512), again)

    def _search(self, way: str, batch: int) -> Tuned:
        self.searched.append(way)
        best = LimitStep(batch=batch, connections=2, records_per_second=9_000.0, confirms=True)
        return Tuned(best, [best])


def test_the_limits_of_sinks_are_searched_once_and_measured_in_each_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = FakeLimits(monkeypatch)
    summary, _, folder = race(FakeCluster(plan(trials=3, limits=True)), tmp_path)
    assert limits.searched == ["consumer group", "COPY", "bulk"]
    assert sorted(limits.measured) == ["COPY"] * 3 + ["bulk"] * 3
    kafka, copy, bulk = summary.limits
    assert (kafka.in_blocks, kafka.records_per_second) == ([], 9_000.0)
    for limit in (copy, bulk):
        assert [each.block for each in limit.in_blocks] == [1, 2, 3]
        assert 2_000 < limit.records_per_second < 2_010
    shares = [cell.efficiency_by_block for cell in summary.cells]
    assert [share and share.blocks for share in shares] == [[1, 2, 3]] * 2
    assert read_summary(folder.path) == summary


def test_a_connector_is_measured_in_each_block_by_the_services_that_its_own_cell_has_warmed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dies(FakeCluster):
        """Loses a service before its second block ends."""

        def audit(self) -> None:
            self.dead += ["postgres"] if self.calls.count("audit") in (1, 2, 3) else []
            super().audit()

    limits = FakeLimits(monkeypatch, None, ("connector", "postgres/jdbc@3x1"))
    summary, _, _ = race(Dies(plan(trials=3, limits=True)), tmp_path)
    assert limits.measured.count("postgres/jdbc@3x1") == 3
    (found,) = [limit for limit in summary.limits if limit.sink == "connector"]
    assert [each.block for each in found.in_blocks] == [1, 2, 3]


def test_a_run_that_ends_in_a_limit_is_taken_up_with_the_limits_that_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeLimits(monkeypatch, interrupts=3)
    earlier = interrupted(FakeCluster(plan(limits=True)), tmp_path)
    assert sum(len(limit.in_blocks) for limit in earlier[1]) == 3
    again = FakeLimits(monkeypatch)
    summary, _, _ = race(FakeCluster(plan(limits=True)), tmp_path, earlier)
    assert (again.searched, len(again.measured)) == ([], 1)
    assert [[each.block for each in limit.in_blocks] for limit in summary.limits] == [[], [1, 2], [1, 2]]
    assert [cell.trials for cell in summary.cells] == [2, 2]


SETTINGS = {"postgres": {"synchronous_commit": "off"}}
SET = {"pipeline": "postgres/jdbc", "label": "quick", "settings": SETTINGS}


@pytest.mark.parametrize("where", ["load", "audit"])
def test_services_are_set_back_however_trials_end(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(plan(pipelines=[SET], trials=1))

    def interrupt(*arguments: object, **how: object) -> None:
        assert where == "load" or cluster.set_to == SETTINGS
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster, where, interrupt)
    interrupted(cluster, tmp_path)
    assert cluster.set_to == {}


def test_how_a_sink_is_set_for_one_cell_alone_is_not_how_it_is_set(tmp_path: Path) -> None:
    class Telling(FakeCluster):
        def sink(self, name: str) -> FakeSink:
            value = self.set_to.get("postgres", {}).get("synchronous_commit", "on")
            sink = FakeSink(self)
            sink.settings = lambda target, config: SinkSettings(  # type: ignore[method-assign]
                {"synchronous_commit": value, "fsync": "on"}, {"shared_buffers": "1GB"}
            )
            return sink

    for pipelines, commit in ((["postgres/jdbc", SET], "on"), ([SET], None)):
        summary, _, _ = race(Telling(plan(pipelines=pipelines, trials=1)), tmp_path / str(commit))
        assert summary.environment["durability"] == {"postgres": {"synchronous_commit": commit, "fsync": "on"}}


# What was seen at each visit: the rate, and the share of the time in which JVMs compiled.
VISITS: dict[str, tuple[list[tuple[float | None, float | None]], bool]] = {
    "was warm before": ([(1_000, 0.02)], True),
    "compiles": ([(1_000, 0.5)], False),
    "nothing known of its JVMs": ([(1_000, None)], False),
    "as fast again": ([(1_000, None), (1_100, None)], True),
    "faster again": ([(1_000, None), (1_300, None)], False),
    "stopped compiling, but became faster": ([(500, 0.5), (1_000, 0.02)], False),
    "stopped compiling, then as fast": ([(500, 0.5), (1_000, 0.02), (1_050, 0.02)], True),
    "compiles again": ([(1_000, 0.02), (900, 0.3)], False),
    "stores nothing": ([(None, None)], True),
    "came to life, warm": ([(None, None), (1_000, 0.02)], True),
    "came to life, nothing known": ([(None, None), (1_000, None)], False),
}


@pytest.mark.parametrize("seen", VISITS)
def test_a_pipeline_is_warm_when_its_jvms_do_not_compile_and_it_becomes_no_faster(seen: str) -> None:
    visits, warm = VISITS[seen]
    assert is_warm([Pilot(rate, compiling_share=share) for rate, share in visits], 0.1) is warm


def test_the_cells_that_are_not_warm_share_the_time_that_is_left_and_the_slowest_has_more_of_it() -> None:
    assert (share_of(120, 6, 6), share_of(90, 5, 6)) == (30, 27)
    # A shorter pilot would have no rate; the last one has what is left.
    assert (share_of(20, 6, 6), share_of(24, 1, 6)) == (6, 24)
