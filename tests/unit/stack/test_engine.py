"""What is read from the Docker engine's answers."""

from typing import Any

import pytest

from sinkbench.stack.engine import used_by

STATS = {
    "cpu_stats": {"cpu_usage": {"total_usage": 2_500_000_000}},
    "memory_stats": {"usage": 900, "stats": {"anon": 500, "file": 300, "file_mapped": 40, "inactive_file": 200}},
}


@pytest.mark.parametrize(
    ("stats", "used"),
    [
        (STATS, (2.5, 540.0)),
        ({"cpu_stats": {"cpu_usage": {"total_usage": 0}}, "memory_stats": {}}, (None, None)),
    ],
)
def test_one_answer_has_cpu_time_and_memory(stats: dict[str, Any], used: tuple[float | None, float | None]) -> None:
    assert used_by(stats) == used
