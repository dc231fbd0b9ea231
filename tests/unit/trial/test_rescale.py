"""A running connector with another number of tasks: what its samples show, and how a run tells it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.samples import Sample
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.results import Audit, Rescale, RunSummary, TrialRecord
from sinkbench.summary.cells import scalings, summarize
from sinkbench.tables.cells import render
from sinkbench.trial.values import Rescaled
from sinkbench.trial.workloads.drain import rate_after, rescale_of, stalls_outside
from tests.support.trials import run_summary, sample, trial

PLAN = Plan.model_validate(
    {"name": "p", "mode": "rescale", "pipelines": ["postgres/jdbc"], "multiples": [1, 2, 4], "trials": 5}
)
CELLS = expand(PLAN, 3)
COLD = next(cell for cell in CELLS if cell.key == "postgres/jdbc@3x2")
LIVE = next(cell for cell in CELLS if cell.key == "postgres/jdbc@3x1to2")


def samples(before: float, after: float, asked: float, still: float, every: float = 0.25) -> tuple[list[Sample], int]:
    """A drain at `before` records/s until `asked`, at none for `still` seconds, then at `after` for 20 s."""
    records = round(before * asked + after * 20)
    made = []
    for seconds in np.arange(0, asked + still + 21, every).tolist():
        stored = before * min(seconds, asked) + after * max(seconds - asked - still, 0.0)
        made.append(sample(seconds, min(records, int(stored))))
    return made, records


@given(before=st.floats(100, 50_000), factor=st.floats(0.5, 4), asked=st.floats(5, 15), still=st.floats(0, 6))
def test_rates_and_standstill_are_those_of_the_drain(before: float, factor: float, asked: float, still: float) -> None:
    taken, records = samples(before, factor * before, asked, still)
    settled = asked + still + 0.25
    found = rescale_of(taken, records, 3, asked, settled)
    assert found.standstill_seconds == pytest.approx(still, abs=0.51)
    assert (found.rebalance_seconds, found.tasks_before) == (pytest.approx(still + 0.25, abs=0.01), 3)
    assert rate_after(taken, records, settled) == pytest.approx(factor * before, rel=0.05)
    if found.before_records_per_second is not None:
        # To within the sampling interval at its end.
        assert found.before_records_per_second == pytest.approx(before, rel=0.25 * max(factor, 1))


def test_what_stands_still_while_tasks_change_is_no_stall() -> None:
    taken, records = samples(1_000, 1_000, 10, 6)
    (stall,) = stalls_outside(taken, records, Rescaled())
    assert stall.seconds == pytest.approx(6, abs=0.5)
    assert stalls_outside(taken, records, Rescaled(10.0, 12.0)) == []


def test_the_rate_before_is_not_told_of_a_moment() -> None:
    taken, records = samples(100, 325, 7.375, 0)
    assert rescale_of(taken, records, 3, 7.375, 7.7).before_records_per_second is None
    taken, records = samples(1_000, 1_000, 15, 0)
    assert rescale_of(taken, records, 3, 15, 15.3).before_records_per_second == pytest.approx(1_000, rel=0.02)


def test_a_drain_that_stores_nothing_more_has_no_standstill_and_no_rate() -> None:
    taken, records = samples(1_000, 0, 10, 0)
    assert rescale_of(taken, 2 * records, 3, 10, 12).standstill_seconds is None
    assert rate_after(taken, 2 * records, 12) is None


def run(twice: int = 0, lost: int = 0) -> tuple[RunSummary, list[TrialRecord]]:
    step = Rescale(tasks_before=3, rebalance_seconds=1.5, standstill_seconds=2.0, before_records_per_second=900.0)
    audit = Audit(produced=100, stored=100 + twice - lost, lost=lost, duplicates=twice)
    taken = []
    for block, slow in enumerate((1.0, 0.5, 0.8, 0.9, 0.7), start=1):
        taken.append(trial(2_000 * slow, COLD, block=block))
        taken.append(trial(1_800 * slow, LIVE, block=block, rescale=step, audit=audit))
    return run_summary(*summarize([COLD, LIVE], taken)), taken


def test_a_step_is_compared_with_the_cold_start_at_as_many_tasks_and_has_a_table_of_its_own() -> None:
    summary, taken = run(twice=7)
    cold, live = summary.cells
    assert cold.rescale is None
    assert (live.rescale.to_cold.to, live.rescale.to_cold.estimate) == (COLD.key, pytest.approx(0.9))
    assert (live.rescale.rebalance_seconds, live.rescale.standstill_seconds) == (1.5, 2.0)
    # At-least-once delivery: what is written twice is a figure here, and no fault.
    assert live.verdict == "ok"
    text = render(summary)
    (row,) = [line for line in text.splitlines() if "3 to 6" in line]
    for shown in ("1.5", "2.0", "900", "1,440", "0.90", "0.90-0.90", "35", "ok"):
        assert shown in row.split(), row
    assert text.count("postgres/jdbc ") == 2
    assert scalings([COLD, LIVE], taken) == []
    summary, _ = run(lost=1)
    assert (summary.cells[1].verdict, summary.passed) == ("LOST 5", False)
