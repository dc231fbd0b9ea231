"""What tasks have read and the sink has not stored."""

import pytest

from sinkbench.analysis.samples import READ, Sample, is_far_ahead, read_ahead


def sample(seconds: float, stored: int | None, read: int | None) -> Sample:
    signs = {} if read is None else {READ: float(read)}
    return Sample(seconds, stored, None, None, None, None, None, None, signs=signs)


def test_the_most_at_one_moment_counts() -> None:
    samples = [sample(0, 0, 0), sample(2, 30_000, 121_000), sample(5, 87_000, 255_000), sample(9, 400_000, 400_000)]
    assert read_ahead(samples) == 168_000


@pytest.mark.parametrize(
    ("samples", "most"),
    [
        ([sample(0, None, 400_000), sample(1, 0, None), sample(2, 10, 15)], 5),
        ([sample(0, 0, None), sample(1, 400_000, None)], None),
        # These tasks began their counts anew.
        ([sample(0, 1_000, 10)], 0),
    ],
)
def test_only_moments_at_which_both_are_known_count(samples: list[Sample], most: int | None) -> None:
    assert read_ahead(samples) == most


@pytest.mark.parametrize(
    ("ahead", "records", "far"),
    [
        (None, 400_000, False),
        (15_000, 20_000, False),  # an aggregate of each task
        (50_000, 400_000, False),
        (50_001, 400_000, True),
    ],
)
def test_few_records_are_on_their_way_in_every_connector(ahead: int | None, records: int, far: bool) -> None:
    assert is_far_ahead(ahead, records) is far
