"""What holds for all tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.support.counts import count

# How long an example takes depends on the machine's load. The same examples each time: examples found by chance would
# fail tests that a change has not broken. `--hypothesis-profile=searching` draws others.
usual = settings(deadline=None, max_examples=count(50, 10), suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("sinkbench", usual, derandomize=True, database=None)
settings.register_profile("searching", usual, max_examples=500)
settings.load_profile("sinkbench")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A rate on a machine that others use is not as expected when it is not so twice; nothing else runs again.

    pytest's last line counts what ran again.
    """
    for item in items:
        for marker in item.iter_markers("measures_a_rate"):
            assert marker.kwargs["reason"]
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=["AssertionError"]))
