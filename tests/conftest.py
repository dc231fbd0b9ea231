"""What holds for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

# These measure on a machine that others use as well.
MEASURING = [Path(__file__).parent / name for name in ("e2e", "compose", "capacity")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An expectation of a measurement has failed when it fails twice; pytest's last line counts those run again."""
    for item in items:
        if any(folder in item.path.parents for folder in MEASURING):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=["AssertionError"]))
