"""Checks sinks, plugins and disk space before a race creates anything."""

from __future__ import annotations

from collections.abc import Sequence

from sinkbench.errors import ConnectError, StackError
from sinkbench.plan.cells import Cell
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import needed, open_sink, sinks_of
from sinkbench.stack import Stack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names

LEAST_FREE_BYTES = 4_000_000_000
PARTITIONS = 24


def preflight(cluster: Cluster, cells: Sequence[Cell]) -> dict[str, str | None]:
    """Checks that each cell has its sink and its plugin in Connect; returns the plugins' versions by class.

    Raises StackError for an unusable sink, ConnectError for a missing plugin, and PlanError for a bad connector file.
    """
    for name in dict.fromkeys(cell.sink for cell in cells):
        cluster.sink(name)
    for cell in cells:
        if not cell.settings:
            continue
        settings = needed(cluster.sink(cell.sink).capabilities.service_settings, "service_settings")
        if (refusal := settings.refusal(cell.settings)) is not None:
            raise StackError(f"{cell.label}: cannot be set as the plan says: {refusal}")
    there = cluster.connect.plugins()
    used = {}
    for cell in cells:
        wanted = cluster.config(cell, Names.of("preflight")).get("connector.class", "")
        found = next((name for name in there if wanted in _spellings(name)), None)
        if found is None:
            shared = cluster.stack.endpoints.shared
            where = "on every worker" if shared else "in connect/plugins and restart the workers (docs/pipelines.md)"
            raise ConnectError(
                f"{cell.label}: Connect has no plugin {wanted or '(no connector.class)'}; install it {where}, or"
                f" leave the pipeline out; its sink connectors: {', '.join(sorted(there)) or 'none'}"
            )
        used[found] = there[found]
    return used


def check_disk(stack: Stack) -> None:
    """Raises StackError if the services have too little space for any trial."""
    free = stack.usage().free_bytes
    if free is not None and free < LEAST_FREE_BYTES:
        raise StackError(
            f"{free / 1e9:.1f} GB free where the services keep their data, at least {LEAST_FREE_BYTES / 1e9:.0f} GB "
            "are needed; free some, or (local stack) set SINKBENCH_HOME to a folder on another disk"
        )


def create_named_targets(stack: Stack) -> None:
    """Creates the topic, index and table of the connector files, so that you can post these files manually."""
    if stack.endpoints.shared:
        return
    kafka = Kafka(stack.endpoints.kafka, stack.endpoints.kafka_settings)
    kafka.create_topic("tides", PARTITIONS, stack.endpoints.replication)
    for name in sinks_of(stack.endpoints):
        sink = open_sink(name, stack.endpoints, CHECKOUT)
        sink.offer_default()
        sink.close()


def _spellings(plugin: str) -> tuple[str, ...]:
    """Connect's names for a plugin: its class, the simple name, and that without "Connector"."""
    simple = plugin.rpartition(".")[2]
    return plugin, simple, simple.removesuffix("Connector")
