"""A running connector that gets more tasks, and fewer, in the middle of its drain; and a trial that nobody looks at."""

from pathlib import Path

import pytest

from sinkbench.runs.store import read_summary
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import one_trial
from tests.support.commands import Run, succeeded
from tests.support.trials import quick_plan
from tests.support.undisturbed import undisturbed

RESCALE = quick_plan("postgres/jdbc-pgbouncer") + "mode: rescale\nmultiples: [1, 2]\n"
WATCHED = """
pipelines:
  - {pipeline: postgres/jdbc, label: watched}
  - {pipeline: postgres/jdbc, label: unwatched, probes: false}
"""


@pytest.mark.rare
@pytest.mark.long
def test_a_step_up_and_a_step_down_are_measured_beside_cold_starts(sinkbench: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(RESCALE)
    done = succeeded(sinkbench("race", "mine.yaml"))
    summary = read_summary(tmp_path / "results" / "latest")
    assert [cell.cell.partition("@")[2] for cell in summary.cells] == ["3x1", "3x2", "3x1to2", "3x2to1"]
    for cell in summary.cells:
        assert cell.passed, cell
        assert cell.audit.lost == 0
        assert sum(cell.placement.values()) == cell.tasks
    unsteady = {cell.cell for cell in summary.cells if cell.at_least is not None}
    for cell in summary.cells[2:]:
        step = cell.rescale
        assert step.before_records_per_second is not None
        # All tasks stop before any starts again.
        assert step.rebalance_seconds > 0
        assert step.standstill_seconds > 0
        cold = f"postgres/jdbc-pgbouncer@3x{cell.tasks // 3}"
        # What did not become steady is compared with nothing.
        if cold in unsteady or cell.cell in unsteady:
            assert step.to_cold is None
        else:
            assert step.to_cold.to == cold
    for line in ("3 to 6", "6 to 3", "rebalance"):
        assert line in done.stdout


def test_what_a_drain_that_is_over_too_soon_has_stored_is_audited_too(stack: LocalStack, tmp_path: Path) -> None:
    # So few are stored before Connect has heard of more tasks. The cold starts come first.
    record, _ = one_trial(stack, tmp_path, RESCALE, 500, cell=2)
    assert record.cell.endswith("3x1to2")
    assert record.invalid[0].startswith("the topic ran dry before"), record.invalid
    assert (record.audit.stored, record.audit.lost) == (500, 0)


@pytest.mark.long
@pytest.mark.rare
def test_the_rate_of_the_samples_is_that_of_the_tables_own_times_which_a_trial_without_probes_has(
    stack: LocalStack, tmp_path: Path
) -> None:
    (watched, _), (unwatched, samples) = undisturbed(
        lambda folder: [one_trial(stack, folder, WATCHED, 500_000, cell=cell) for cell in (0, 1)], tmp_path
    )
    assert (watched.reasons, unwatched.reasons) == ([], [])
    assert unwatched.records_per_second == unwatched.stamped_records_per_second
    assert samples
    assert set(unwatched.cpu_seconds_per_million) <= {"controller"}
    # Two ways to the same rate; that of the samples leaves the warm-up out.
    assert watched.records_per_second == pytest.approx(watched.stamped_records_per_second, rel=0.25)
