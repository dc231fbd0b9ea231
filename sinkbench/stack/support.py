"""Whether a service that answers is of a version that is supported."""

from __future__ import annotations

from sinkbench.errors import ServiceError
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka_release import kafka_refusal, kafka_release
from sinkbench.stack import Endpoints
from sinkbench.stack.registry import sink_service

__all__ = ["unsupported"]

TIMEOUT_SECONDS = 10.0


def unsupported(endpoints: Endpoints, name: str) -> str | None:
    """Why the service of that name cannot be used, in one line with its version; None if it can, or does not tell.

    Connect has no limits of its own.
    """
    try:
        if name == "kafka":
            return kafka_refusal(kafka_release(endpoints.kafka, endpoints.kafka_settings, TIMEOUT_SECONDS))
        if name in endpoints.sinks:
            return sink_service(name).refusal(endpoints.sinks[name])
    except ServiceError as error:
        return in_one_line(error)
    return None
