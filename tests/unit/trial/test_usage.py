"""Memory and network of processes as the signs of services."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sinkbench.stack import NetworkBytes
from sinkbench.trial.usage import usage_signs


def signs(memory: dict[str, Any], network: dict[str, Any]) -> dict[str, float]:
    stack: Any = SimpleNamespace(memory_bytes=lambda: memory, network_bytes=lambda: network)
    return usage_signs(stack)


def test_all_workers_are_one_service() -> None:
    found = signs({"kafka": 5.0, "connect-1": 2.0, "connect-2": 3.0}, {"kafka": NetworkBytes(10.0, 20.0)})
    assert found == {
        "kafka_memory_bytes": 5.0,
        "connect_memory_bytes": 5.0,
        "kafka_received_bytes_total": 10.0,
        "kafka_sent_bytes_total": 20.0,
    }


def test_a_service_of_which_a_part_was_not_seen_is_absent_and_not_smaller() -> None:
    assert signs({"connect-1": 2.0, "connect-2": None, "connect-3": 1.0}, {"kafka": None}) == {}
