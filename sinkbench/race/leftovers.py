"""What killed races leave: any trial's objects on a stack of ours, and those of known runs on external clusters."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from sinkbench.errors import PlanError, StackError
from sinkbench.plan.cells import Cell
from sinkbench.services.access import curl
from sinkbench.services.kafka import OWN_GROUP, group_of
from sinkbench.sinks import needed, sink_kind, sinks_of
from sinkbench.stack import Stack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import PREFIX, TOKEN, TRIAL, Names, is_ours, names_of


def book_of(stack: Stack) -> Path:
    """The file next to the stack's lock with the tokens of the runs on external clusters since the last `sweep`."""
    return stack.lock_file.with_name("runs")


def note_run(stack: Stack, token: str) -> None:
    if stack.endpoints.shared:
        with book_of(stack).open("a", encoding="ascii") as file:
            file.write(f"{token}\n")


def leftover_names(stack: Stack) -> re.Pattern[str]:
    """Matches the names of what earlier runs created."""
    if not stack.endpoints.shared:
        return TRIAL
    book = book_of(stack)
    lines = book.read_text(encoding="ascii", errors="replace").splitlines() if book.exists() else []
    # Without a token nothing matches.
    return names_of("|".join(filter(TOKEN.fullmatch, lines)) or "(?!)")


def sweep(cluster: Cluster) -> list[str]:
    """Removes the objects of killed runs, except consumer groups with members; returns them in words."""
    swept = []
    names = leftover_names(cluster.stack)
    mine = names.fullmatch
    for connector in filter(mine, cluster.connect.only_declared()):
        cluster.connect.delete(connector)
        swept.append(f"KafkaConnector {connector}")
    for connector in filter(mine, cluster.connect.connectors()):
        group = cluster.connect.config(connector).get(OWN_GROUP) or group_of(connector)
        cluster.stop_connector(connector, group)
        cluster.kafka.delete_group(group)
        swept.append(f"connector {connector}")
    for name in sinks_of(cluster.stack.endpoints):
        # On external clusters only a trial's own index has settings.
        if sink_kind(name).settable and not cluster.stack.endpoints.shared:
            swept += needed(cluster.sink(name).capabilities.service_settings, "service_settings").revert()
        for target in filter(mine, cluster.sink(name).leftovers(PREFIX)):
            cluster.sink(name).drop(target)
            swept.append(f"{name}'s {target}")
        swept += drop_strays(cluster, name, lambda stray: names.search(stray) is not None)
    for topic in filter(mine, cluster.kafka.topics()):
        cluster.kafka.delete_topic(topic)
        swept.append(f"topic {topic}")
    # A run may be killed after the deletion of a connector and before that of its group.
    groups = [name for name in sorted(cluster.kafka.groups()) if mine(name.removeprefix(group_of("")))]
    empty = [name for name in groups if cluster.kafka.is_empty(name)]
    for group in empty:
        cluster.kafka.delete_group(group)
        swept.append(f"consumer group {group}")
    if cluster.stack.endpoints.shared and empty == groups:
        book_of(cluster.stack).unlink(missing_ok=True)
    return swept


def drop_strays(cluster: Cluster, sink: str, mine: Callable[[str], bool]) -> list[str]:
    """Removes the tables or indices that connectors made elsewhere for topics of ours, by name; returns these names."""
    others = cluster.sink(sink).capabilities.others
    strays = [] if others is None else [name for name in others.seen().written if not is_ours(name) and mine(name)]
    for name in strays:
        needed(others, "others").drop(name)
    return strays


def check_groups(cluster: Cluster, cells: Sequence[Cell]) -> None:
    """Raises PlanError if a connector file names a consumer group that exists: a trial reads with it and removes it."""
    named = [(cell, cluster.config(cell, Names.of("preflight")).get(OWN_GROUP)) for cell in cells]
    there = cluster.kafka.groups() if any(group for _, group in named) else {}
    for cell, group in named:
        if group in there:
            raise PlanError(
                f"{cell.label}: the consumer group {group} of {OWN_GROUP} exists, and would be removed after the first"
                " trial; name another one for the race, or delete it if nobody uses it"
            )


def check_alone(cluster: Cluster) -> None:
    """Raises StackError if a connector of another run remains after `sweep`, or on a local stack any that runs."""
    endpoints = cluster.stack.endpoints
    if endpoints.shared:
        others = [name for name in cluster.connect.connectors() if TRIAL.fullmatch(name)]
    else:
        others = [f"{name} ({tasks} tasks)" for name, tasks in cluster.connect.running().items()]
    if others:
        where = f"{next(iter(endpoints.connect.values()))}/connectors/{others[0].split()[0]}"
        raise StackError(
            f"connector {others[0]} runs on this stack, and would share workers, CPU and connections with every trial;"
            f" if no other race goes on, delete it, as by `{curl(endpoints.connect_access)} -X DELETE {where}`"
        )
