"""What tasks have read and the sink has not stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.readahead import READ, is_far_ahead, read_ahead
from sinkbench.analysis.samples import Sample


def sample(seconds: float, stored: int | None, read: int | None) -> Sample:
    signs = {} if read is None else {READ: float(read)}
    return Sample(seconds, stored, None, None, None, None, None, None, signs=signs)


def test_the_most_at_one_moment_counts() -> None:
    samples = [sample(0, 0, 0), sample(2, 30_000, 121_000), sample(5, 87_000, 255_000), sample(9, 400_000, 400_000)]
    assert read_ahead(samples) == 168_000


def test_only_moments_at_which_both_are_known_count() -> None:
    assert read_ahead([sample(0, None, 400_000), sample(1, 0, None), sample(2, 10, 15)]) == 5


def test_without_the_tasks_metrics_nothing_is_known() -> None:
    assert read_ahead([sample(0, 0, None), sample(1, 400_000, None)]) is None


def test_tasks_that_began_their_counts_anew_are_not_behind() -> None:
    assert read_ahead([sample(0, 1_000, 10)]) == 0


@pytest.mark.parametrize(
    ("ahead", "records", "far"),
    [
        (None, 400_000, False),
        (15_000, 20_000, False),  # an aggregate of each task
        (50_000, 400_000, False),
        (50_001, 400_000, True),
        (90_000, 1_000_000, False),
    ],
)
def test_few_records_are_on_their_way_in_every_connector(ahead: int | None, records: int, far: bool) -> None:
    assert is_far_ahead(ahead, records) is far


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1))
def test_it_is_never_negative_nor_more_than_was_read(readings: list[tuple[int, int]]) -> None:
    found = read_ahead([sample(at, stored, read) for at, (stored, read) in enumerate(readings)])
    assert found is not None
    assert 0 <= found <= max(read for _, read in readings)
