"""What `--fix` does: the little that can be undone, on a stack of one's own, while no race runs there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sinkbench.doctor.diagnosis import Change, Diagnosis
from sinkbench.errors import StackError
from sinkbench.race.lock import only_race
from sinkbench.services.access import curl
from sinkbench.services.connect import ConnectCluster
from sinkbench.sinks import sink_kind
from sinkbench.stack import Endpoints, Stack

__all__ = ["mend", "undo"]


def mend(stack: Stack, checkout: Path, diagnosis: Diagnosis) -> Iterator[str]:
    """Mends what can be mended so that it can be undone.

    Yields:
        A line for each change, with the command that undoes it.

    Raises:
        StackError: others use these clusters, or a race runs on this stack.
        ServiceError: a service does not take a change.
    """
    endpoints = stack.endpoints
    if endpoints.shared:
        raise StackError(
            "--fix: these clusters belong to somebody else, so nothing is changed; mend it as the lines say"
        )
    changes = [each.found.change for each in diagnosis.findings if each.found.change is not None]
    if not changes:
        return
    with only_race(stack.lock_file, checkout, "doctor", stack.own_container):
        for change in changes:
            yield _stopped(endpoints, change.index) if change.sink is None else _set(endpoints, change.sink, change)


def _stopped(endpoints: Endpoints, name: str) -> str:
    with ConnectCluster(endpoints.connect.values(), endpoints.connect_access) as connect:
        connect.stop(name)
    return f"stopped the connector {name}; undo: {undo(endpoints, Change(None, name), None)}"


def _set(endpoints: Endpoints, sink: str, change: Change) -> str:
    checkup = sink_kind(sink).checkup
    if checkup is None or checkup.change is None:
        raise StackError(f"--fix: the sink {sink} takes no changes; leave --fix out")
    before = checkup.change(endpoints, change.index, change.setting, change.value)
    became = "its default" if change.value is None else change.value
    return (
        f"set {change.setting} of {change.index} to {became}, from {before or 'its default'};"
        f" undo: {undo(endpoints, change, before)}"
    )


def undo(endpoints: Endpoints, change: Change, before: str | None) -> str:
    """The command that undoes a change; `before` is what a setting was, None if that was its default. Pure."""
    if change.sink is None:
        worker = next(iter(endpoints.connect.values()))
        return f"{curl(endpoints.connect_access)} -X PUT {worker}/connectors/{change.index}/resume"
    there = endpoints.sinks[change.sink]
    value = "null" if before is None else f'"{before}"'
    body = f"""-H 'Content-Type: application/json' -d '{{"{change.setting}": {value}}}'"""
    return f"{curl(there.access)} -X PUT {there.address}/{change.index}/_settings {body}"
