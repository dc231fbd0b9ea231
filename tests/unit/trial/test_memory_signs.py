"""Memory of processes as the signs of services."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sinkbench.trial.probes import memory_signs


def signs(memory: dict[str, float | None]) -> dict[str, float]:
    stack: Any = SimpleNamespace(memory_bytes=lambda: memory)
    return memory_signs(stack)


def test_all_workers_are_one_service() -> None:
    found = signs({"kafka": 5.0, "connect-1": 2.0, "connect-2": 3.0})
    assert found == {"kafka_memory_bytes": 5.0, "connect_memory_bytes": 5.0}


def test_a_service_of_which_a_part_was_not_seen_is_absent_and_not_smaller() -> None:
    assert signs({"connect-1": 2.0, "connect-2": None, "connect-3": 1.0}) == {}
