"""Records that tasks have read and the sink has not stored: a connector without back-pressure keeps them in memory,
and may commit them."""

from __future__ import annotations

from collections.abc import Sequence

from sinkbench.analysis.samples import Sample

READ = "tasks_read_total"
"""The sign that counts the records that tasks have read."""
# Every connector has polls and aggregates in flight.
FAR_SHARE = 0.1
FAR_RECORDS = 50_000


def read_ahead(samples: Sequence[Sample]) -> int | None:
    """The most records at one moment that were read and not stored; None if unknown. Reads are sampled every two
    seconds."""
    ahead = [each.signs[READ] - each.stored for each in samples if READ in each.signs and each.stored is not None]
    return max(0, round(max(ahead))) if ahead else None


def is_far_ahead(ahead: int | None, records: int) -> bool:
    """Whether that is more than any connector has in flight: a tenth of the trial's `records`, and 50,000."""
    return ahead is not None and ahead > max(FAR_SHARE * records, FAR_RECORDS)
