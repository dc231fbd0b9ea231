"""Addresses of services that a unit test does not reach."""

from typing import Any

from sinkbench.stack import Endpoints


def endpoints(kafka: str = "127.0.0.1:1", **given: Any) -> Endpoints:
    """Endpoints of a stack that has nothing but what is given."""
    return Endpoints(kafka=kafka, **{"connect": {}, "worker_ids": {}, **given})
