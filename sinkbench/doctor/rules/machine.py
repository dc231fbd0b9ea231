"""The machine: memory, open files, disk, and certificates that run out. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

from sinkbench.doctor.diagnosis import Found, NotSeen, Rule
from sinkbench.doctor.facts import Area, Facts
from sinkbench.services.access import LOOPBACK
from sinkbench.sinks.state import SearchCluster
from sinkbench.topology import BESIDE_HEAP, OTHERS_BYTES

__all__ = ["RULES"]

# With less than this the kernel begins to end processes.
LEAST_AVAILABLE_BYTES = 500_000_000
# A JVM in a container needs a third more than its heap, at the least.
TIGHT = 4 / 3
# Elasticsearch does not start off loopback with fewer; others open a file for each segment of each partition.
ELASTICSEARCH_FILES, LEAST_FILES = 65_535, 4_096
# Of an expiring certificate: tomorrow's run may end that late.
WARN_BEFORE = timedelta(days=2)
WITH_TLS = (Area.CONNECT, Area.KAFKA, Area.SINKS)


def little_memory(facts: Facts) -> Iterator[Found]:
    machine = facts.machine
    if machine.available_bytes is not None:
        needed = 0.0 if machine.up else BESIDE_HEAP * (machine.heap_bytes or 0) + OTHERS_BYTES
        available = f"{machine.available_bytes / 1e9:.1f} GB of memory are available"
        if machine.available_bytes < max(needed, LEAST_AVAILABLE_BYTES):
            wants = f", and the stack takes about {needed / 1e9:.1f} GB" if needed else ""
            yield Found(
                "machine",
                f"{available}{wants}",
                "what does not fit is swapped, or the kernel ends a service in the middle of a trial",
                "end other programs, or lower SINKBENCH_KAFKA_HEAP, SINKBENCH_CONNECT_HEAP,"
                " SINKBENCH_ELASTICSEARCH_HEAP or SINKBENCH_WORKERS",
                spoils=True,
            )
    for service, (limit, heap) in machine.limits.items():
        if limit < TIGHT * heap:
            yield Found(
                service,
                f"its container may have {limit / 1e9:.1f} GB, and its heap is {heap / 1e9:.1f} GB",
                "a JVM needs about half as much memory again as its heap; a container that asks for more is killed",
                f"raise SINKBENCH_{service.upper()}_MEMORY, or lower SINKBENCH_{service.upper()}_HEAP",
                spoils=limit < heap,
            )


def few_files(facts: Facts) -> Iterator[Found | NotSeen]:
    if Area.FILES in facts.unseen:
        yield NotSeen(facts.unseen[Area.FILES])
    nodes = {
        f"{name} ({node.name})": (node.files, LEAST_FILES if _on_loopback(state.cluster) else ELASTICSEARCH_FILES)
        for name, state in facts.sinks.items()
        if state.cluster is not None
        for node in state.cluster.nodes
        if node.files is not None and node.files >= 0
    }
    services = {service: (files, LEAST_FILES) for service, files in facts.machine.files.items()}
    for service, (files, wanted) in {**services, **nodes}.items():
        if files < wanted:
            yield Found(
                service,
                f"it may have {files:,} files and connections open",
                "a service without another one fails in the middle of a trial; Elasticsearch does not start with fewer"
                f" than {ELASTICSEARCH_FILES:,}, unless it is on loopback",
                f"ulimit -n {ELASTICSEARCH_FILES} before `sinkbench up`; LimitNOFILE where a service manager starts it",
                spoils=files < LEAST_FILES,
            )


def _on_loopback(cluster: SearchCluster) -> bool:
    return (urlsplit(cluster.address).hostname or "") in LOOPBACK


def little_disk(facts: Facts) -> Iterator[Found]:
    free, least = facts.machine.free_bytes, facts.machine.least_free_bytes
    if free is not None and free < least:
        yield Found(
            "disk",
            f"{free / 1e9:.1f} GB free where the services keep their data, at least {least / 1e9:.0f} GB are needed",
            "a race does not begin",
            "free some, or (local stack) set SINKBENCH_HOME to a folder on another disk",
            spoils=True,
        )


def expiring_certificate(facts: Facts) -> Iterator[Found | NotSeen]:
    # Whoever shows one that has expired may be seen by nobody else.
    yield from (NotSeen(facts.unseen[area]) for area in WITH_TLS if area in facts.unseen)
    for server, until in facts.certificates.items():
        if facts.now is None or until - facts.now > WARN_BEFORE:
            continue
        over = until <= facts.now
        yield Found(
            server,
            f"its certificate {'has expired' if over else 'expires'} at {until:%Y-%m-%d %H:%M} UTC",
            "from then on clients that verify it are refused, connectors' tasks too, in the middle of a trial",
            "replace it, and start the server again; of a stack of ours: `sinkbench down`, then `up`, which renews it",
            spoils=over,
        )


RULES = (
    Rule("little-memory", (Area.MEMORY,), little_memory),
    Rule("few-files", (), few_files),
    Rule("little-disk", (Area.DISK,), little_disk),
    Rule("expiring-certificate", (), expiring_certificate),
)
