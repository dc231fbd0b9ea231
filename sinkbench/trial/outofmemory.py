"""That a trial has ended since a JVM had no memory left, and what to do. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sinkbench.stack import ServiceState
from sinkbench.topology import service_of

__all__ = ["exhausted_in_words", "mend_of", "used_up_heaps"]

# With -XX:+ExitOnOutOfMemoryError, which connect/run and Elasticsearch give to Java. A worker that cannot start has the
# same; one that ran tasks could.
EXIT_CODE = 3
# The services that are started so, and the setting of each one's heap.
_HEAPS = {"connect": "SINKBENCH_CONNECT_HEAP", "elasticsearch": "SINKBENCH_ELASTICSEARCH_HEAP"}
_HOLD_LESS = (
    "have tasks hold less: consumer.override.max.poll.records, consumer.override.max.partition.fetch.bytes, the"
    " connector's batch or aggregate"
)


def used_up_heaps(states: Iterable[ServiceState], dead: Collection[str]) -> list[str]:
    """Those of the services that have died whose JVM had no heap left, in the order of `states`."""
    return [
        each.name
        for each in states
        if each.name in dead and each.exit_code == EXIT_CODE and service_of(each.name) in _HEAPS
    ]


def exhausted_in_words(names: Collection[str]) -> str:
    """That these services have died for memory, and what to do, for a person; there is at least one."""
    services = dict.fromkeys(map(service_of, names))
    its, it = ("its Java heap was", "it") if len(names) == 1 else ("their Java heaps were", "them")
    settings = " and ".join(_HEAPS[service] for service in services)
    less = f", or {_HOLD_LESS}" if "connect" in services else ""
    died = f"{' and '.join(names)} died, out of memory: {its} used up (exit code {EXIT_CODE})"
    return f"{died}; give {it} more ({settings}){less}"


def mend_of(cause: str) -> str:
    """Why tasks FAILED that had no memory left, and what to do, for a person; `cause` is what they say themselves."""
    return f"out of memory ({cause}); give the workers more heap ({_HEAPS['connect']}), or {_HOLD_LESS}"
