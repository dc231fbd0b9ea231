"""The scaling law: what is found again, and what is not claimed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.scalability import Law, fit, scaling_of
from sinkbench.results import Scaling
from sinkbench.tables.lines import scaling_line
from tests.support.present import present

TASKS = (3, 6, 12, 24)


def measured(
    law: Law, noise: float = 0.0, blocks: int = 6, tasks: tuple[int, ...] = TASKS
) -> dict[int, dict[int, float]]:
    draw = np.random.default_rng(1)
    slow = 1 + noise * draw.standard_normal(blocks)
    return {
        count: {
            block + 1: float(law.rate(count) * slow[block] * (1 + noise * draw.standard_normal()))
            for block in range(blocks)
        }
        for count in tasks
    }


def of(law: Law, **data: float) -> Scaling:
    return scaling_of("a/b", 3, measured(law, **data))  # type: ignore[arg-type]


@given(st.floats(1, 1e5), st.floats(0, 0.9), st.floats(0, 0.05))
def test_known_parameters_are_found_again(one_task: float, contention: float, coherency: float) -> None:
    law = Law(one_task, contention, coherency)
    found = present(fit({tasks: law.rate(tasks) for tasks in (1, 2, 4, 8, 16, 32)}))
    assert found.one_task == pytest.approx(one_task, rel=1e-6)
    assert found.contention == pytest.approx(contention, abs=1e-6)
    assert found.coherency == pytest.approx(coherency, abs=1e-8)


@given(st.floats(0, 0.9), st.floats(0.001, 0.05))
def test_the_peak_is_where_no_other_number_of_tasks_is_faster(contention: float, coherency: float) -> None:
    law = Law(100, contention, coherency)
    assert all(law.rate(law.peak) >= law.rate(max(1, law.peak * factor)) - 1e-9 for factor in (0.5, 0.9, 1.1, 2))
    assert math.isinf(Law(100, contention, 0).peak)


def test_intervals_hold_the_true_parameters_and_the_peak() -> None:
    law = Law(1000, 0.05, 0.01)
    found = of(law, noise=0.03, blocks=8)
    assert found.supported
    for known, what in (
        (1000, found.one_task),
        (0.05, found.contention),
        (0.01, found.coherency),
        (law.peak, found.peak_tasks),
    ):
        interval = present(present(what).interval)
        assert interval.low <= known <= interval.high
    assert found == of(law, noise=0.03, blocks=8)


@pytest.mark.parametrize("law", [Law(1000, 0, 0), Law(1000, 0.02, 0.0001)])
def test_without_coherency_or_with_a_peak_beyond_the_data_there_is_no_peak(law: Law) -> None:
    found = of(law, noise=0.02)
    assert (found.supported, found.peak_tasks) == (True, None)


def test_a_rate_that_does_not_depend_on_the_tasks_is_all_contention() -> None:
    found = scaling_of("a/b", 3, {tasks: dict.fromkeys(range(1, 7), 500.0) for tasks in TASKS})
    assert (found.supported, found.r_squared) == (True, None)
    assert present(found.contention).estimate == pytest.approx(1, abs=0.01)


def test_a_peak_at_the_fewest_tasks_or_before_is_not_given_as_a_number() -> None:
    assert scaling_line(of(Law(1000, 0.05, 0.2), noise=0.01)).endswith("; the rate is highest at 3 tasks or fewer")


@pytest.mark.parametrize("noise", [0.05, 0.15])
def test_of_rates_that_are_level_but_for_noise_hardly_any_has_a_peak(noise: float) -> None:
    draw = np.random.default_rng(5)
    peaks = 0
    for _ in range(40):
        rates = {tasks: dict(enumerate((1 + noise * draw.standard_normal(5)).tolist())) for tasks in TASKS}
        found = scaling_of("a/b", 3, rates)
        peaks += found.supported and found.peak_tasks is not None
    assert peaks <= 2


def test_rates_that_fall_faster_than_the_law_knows_are_not_said_to_grow() -> None:
    found = scaling_of("a/b", 3, {tasks: {1: 1_000 / tasks**2} for tasks in TASKS})
    assert (found.supported, found.why) == (False, "with more tasks the rates fall faster than the law knows")


def test_fewer_than_five_blocks_give_a_fit_without_intervals_and_without_a_peak() -> None:
    found = of(Law(1000, 0.05, 0.01), blocks=3)
    assert found.supported
    assert present(found.contention).interval is None
    assert found.peak_tasks is None


def test_too_few_numbers_of_tasks_give_no_fit() -> None:
    rates = measured(Law(1000, 0.05, 0.01), tasks=(3, 6, 12))
    found = scaling_of("a/b", 3, {**rates, 24: {}, 48: {1: 0.0}})
    assert (found.supported, found.why) == (False, "a fit needs rates at 4 numbers of tasks, there are 3")
    assert [point.tasks for point in found.points] == [3, 6, 12, 48]
    assert scaling_of("a/b", 3, {}).points == []


def test_rates_that_follow_no_such_law_are_not_fitted_silently() -> None:
    zigzag = scaling_of("a/b", 3, {3: {1: 100.0}, 6: {1: 1000.0}, 12: {1: 100.0}, 24: {1: 1000.0}})
    assert not zigzag.supported
    assert "off the fitted one" in present(zigzag.why)
