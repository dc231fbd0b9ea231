"""A load's summary as a load generator gives it."""

from collections.abc import Mapping
from typing import Any

from loadgen.summary import Summary


def summary(body: Mapping[str, Any], failed: int = 0, **more: Any) -> Summary:
    """Of a load with the `run`, `topic`, `first_seq` and `count` of `body`."""
    count = body["count"]
    values: dict[str, Any] = {
        "run": body["run"], "topic": body["topic"], "first_seq": body["first_seq"], "asked": count, "sent": count,
        "acknowledged": count - failed, "failed": failed, "errors": {"Broken": failed} if failed else {},
        "elapsed_seconds": 2.0, "records_per_second": 1.0, "megabytes_per_second": 1.0, "bytes": count * 512,
        "cpu_seconds": 0.25, "rate_asked": None, "behind": None,
        "interrupted": False, "stopped": None,
    }  # fmt: skip
    return Summary(**{**values, **more})
