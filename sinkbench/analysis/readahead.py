"""Records that tasks have read and the sink has not stored: what a connector without back-pressure keeps in memory.

Such a connector takes records faster than its sink does, and may commit what it only holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from sinkbench.analysis.samples import Sample

READ = "tasks_read_total"
"""The sign that tells how many records the tasks have read."""
# Polls and aggregates are on their way in every connector.
FAR_SHARE = 0.1
FAR_RECORDS = 50_000


def read_ahead(samples: Sequence[Sample]) -> int | None:
    """The most records at one moment that were read and not stored; None if what was read is not known.

    What tasks have read is known every two seconds, so the true number may be larger.
    """
    ahead = [each.signs[READ] - each.stored for each in samples if READ in each.signs and each.stored is not None]
    return max(0, round(max(ahead))) if ahead else None


def is_far_ahead(ahead: int | None, records: int) -> bool:
    """Whether that many of a trial's `records` are more than what is on its way in every connector: a tenth of them,
    and 50,000."""
    return ahead is not None and ahead > max(FAR_SHARE * records, FAR_RECORDS)
