"""Finds other users of a stack when a race begins: refuses connectors on a local stack, reports others."""

from __future__ import annotations

import time

from sinkbench.errors import StackError
from sinkbench.services.access import curl
from sinkbench.sinks import sinks_of
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.others import Others, written

# Records are counted for this time; PostgreSQL updates its table statistics once a second.
LOOK_SECONDS = 1.5
# Lower rates are no load: Connect's own topics, and tables in occasional use.
LEAST_PER_SECOND = 50.0
MOST_NAMED = 5


def also_there(cluster: Cluster) -> list[str]:
    """Returns other users after `sweep`, a line each. Raises StackError if another connector runs on a local stack."""
    sinks = sinks_of(cluster.stack.endpoints)
    before = cluster.others(sinks=sinks)
    endpoints = cluster.stack.endpoints
    if before.connectors and not endpoints.shared:
        worker = next(iter(endpoints.connect.values()))
        raise StackError(refusal(before, worker, curl(endpoints.connect_access)))
    time.sleep(LOOK_SECONDS)
    return in_words(before, cluster.others(sinks=sinks))


def refusal(found: Others, worker: str, curl: str = "curl") -> str:
    """Returns that other connectors run, and what to do; `curl` begins a command to that worker."""
    (first, _), *others = found.connectors.items()
    them = "it" if not others else "each"
    verb = "runs" if not others else "run"
    return (
        f"{' and '.join(_tasks(found))} {verb} on this stack, and would share workers, CPU and connections with every"
        f" trial; delete {them}, as by `{curl} -X DELETE {worker}/connectors/{first}`, or stop {them} by"
        f" `{curl} -X PUT {worker}/connectors/{first}/stop`"
    )


def in_words(before: Others, after: Others) -> list[str]:
    """Returns the other users in two readings that are `LOOK_SECONDS` apart, a line each."""
    lines = [f"{each} running: it shares workers, CPU and connections" for each in _tasks(after)]
    lines += [
        f"records going into {where}: they share Kafka, the sinks and CPU"
        for where, count in written(before, after).items()
        if count >= LEAST_PER_SECOND * LOOK_SECONDS
    ]
    for sink, count in after.connections.items():
        if open_ones := min(count, before.connections.get(sink, 0)):
            what = "1 connection" if open_ones == 1 else f"{open_ones} connections"
            lines.append(f"{what} to {sink} open: no trial counts them, but they share what it has of these")
    return lines


def _tasks(found: Others) -> list[str]:
    named = [
        f"connector {name} ({tasks} {'task' if tasks == 1 else 'tasks'})" for name, tasks in found.connectors.items()
    ]
    more = len(named) - MOST_NAMED
    return [*named[:MOST_NAMED], *([f"{more} more connectors"] if more > 0 else [])]
