"""What killed runs have left behind: all names of trials on a local stack, names of known runs on external clusters."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.services.kafka import group_of
from sinkbench.sinks import needed, sink_kind, sinks_of
from sinkbench.stack import Stack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import NUMBER, PREFIX, TOKEN, TRIAL


class Book:
    """The tokens of runs that began on external clusters, a line each, in a file next to the stack's lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def of(cls, stack: Stack) -> Book:
        """The book of that stack."""
        return cls(stack.lock_file.with_name("runs"))

    def tokens(self) -> list[str]:
        """The tokens of all runs since the book was last emptied."""
        lines = self._path.read_text(encoding="ascii", errors="replace").splitlines() if self._path.exists() else []
        return [line for line in lines if TOKEN.fullmatch(line)]

    def begin(self, token: str) -> None:
        """Records a run, before it creates anything."""
        with self._path.open("a", encoding="ascii") as file:
            file.write(f"{token}\n")

    def clear(self) -> None:
        """Forgets all runs: what they left behind is gone."""
        self._path.unlink(missing_ok=True)


def note_run(stack: Stack, token: str) -> None:
    """Records that a run begins, so that a later one knows what it may leave behind."""
    if stack.endpoints.shared:
        Book.of(stack).begin(token)


def is_leftover(stack: Stack) -> Callable[[str], bool]:
    """Whether a thing of that name was left behind by an earlier run."""
    if not stack.endpoints.shared:
        return lambda name: TRIAL.fullmatch(name) is not None
    tokens = "|".join(Book.of(stack).tokens())
    pattern = re.compile(rf"{PREFIX}({tokens}){NUMBER}")
    return lambda name: bool(tokens) and pattern.fullmatch(name) is not None


def sweep(cluster: Cluster) -> list[str]:
    """Removes what killed runs have left behind, except consumer groups with members; returns what, for a person."""
    swept = []
    mine = is_leftover(cluster.stack)
    for connector in filter(mine, cluster.connect.connectors()):
        cluster.stop_connector(connector)
        cluster.kafka.delete_group(group_of(connector))
        swept.append(f"connector {connector}")
    for name in sinks_of(cluster.stack.endpoints):
        # Of others' clusters nothing is set but an index of a trial's own.
        if sink_kind(name).settable and not cluster.stack.endpoints.shared:
            swept += needed(cluster.sink(name).capabilities.service_settings, "service_settings").revert()
        for target in filter(mine, cluster.sink(name).leftovers(PREFIX)):
            cluster.sink(name).drop(target)
            swept.append(f"{name}'s {target}")
    for topic in filter(mine, cluster.kafka.topics()):
        cluster.kafka.delete_topic(topic)
        swept.append(f"topic {topic}")
    # A run may be killed between the end of a connector and that of its group.
    groups = [name for name in cluster.kafka.groups() if mine(name.removeprefix(group_of("")))]
    empty = [name for name in groups if cluster.kafka.is_empty(name)]
    for group in empty:
        cluster.kafka.delete_group(group)
        swept.append(f"consumer group {group}")
    if cluster.stack.endpoints.shared and empty == groups:
        Book.of(cluster.stack).clear()
    return swept


def check_alone(cluster: Cluster) -> None:
    """Raises StackError if, after `sweep`, a connector of another run's trial is on the Connect cluster."""
    others = [name for name in cluster.connect.connectors() if TRIAL.fullmatch(name)]
    if others:
        raise StackError(
            f"another run's connector {others[0]} is on this Connect cluster, and two races would change each"
            " other's figures; wait until that run has ended or, if it was killed, delete the connector"
        )
