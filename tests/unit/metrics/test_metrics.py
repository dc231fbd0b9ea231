"""Every figure says what it means, and has no value where nothing was measured."""

from dataclasses import replace

import pytest

from sinkbench.metrics import MEANINGS, METRICS, connections, cpu, memory
from sinkbench.metrics.metric import Seen, fields_of
from tests.support.trials import sample


def test_every_figure_with_a_column_says_what_it_means() -> None:
    assert {each.heading for each in METRICS if each.columns or each.heads} <= MEANINGS.keys()


@pytest.mark.parametrize("module", [connections, cpu, memory])
def test_of_a_trial_without_samples_nothing_is_0(module: object) -> None:
    found = fields_of(module.METRICS, lambda metric: metric.of_trial(Seen(records=9)))  # type: ignore[attr-defined]
    assert {value for value in found.values() if isinstance(value, float | int)} == set()


def test_counters_that_began_again_and_a_topic_that_was_not_read_leave_no_figures() -> None:
    samples = [sample(0, 0, signs={"pages": 100.0}), sample(1, 10, signs={"pages": 300.0})]
    seen = Seen(samples=samples, records=10, task_metrics={"tasks_fetched_bytes_total": 6_400.0})
    assert fields_of(memory.METRICS, lambda metric: metric.of_trial(seen))["fetched_bytes_per_record"] == 640.0
    unread = replace(seen, read_all=False, counters_go_on=False)
    assert fields_of(memory.METRICS, lambda metric: metric.of_trial(unread))["fetched_bytes_per_record"] is None
    assert fields_of(cpu.METRICS, lambda metric: metric.of_trial(unread))["cpu_seconds_per_million"] == {}
