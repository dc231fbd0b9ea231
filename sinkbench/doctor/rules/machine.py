"""Rules about the machine: memory and disk. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sinkbench.doctor.diagnosis import Found, Rule
from sinkbench.doctor.facts import Area, Facts

# Below this the kernel begins to kill processes.
LEAST_AVAILABLE_BYTES = 500_000_000


def little_memory(facts: Facts) -> Iterator[Found]:
    machine = facts.machine
    if machine.available_bytes is not None:
        needed = machine.needed_bytes
        available = f"{machine.available_bytes / 1e9:.1f} GB of memory are available"
        if machine.available_bytes < max(needed, LEAST_AVAILABLE_BYTES):
            wants = f", and the stack takes about {needed / 1e9:.1f} GB" if needed else ""
            yield Found(
                "machine",
                f"{available}{wants}",
                "what does not fit is swapped, or the kernel ends a service in the middle of a trial",
                "end other programs, or lower SINKBENCH_KAFKA_HEAP, SINKBENCH_CONNECT_HEAP,"
                " SINKBENCH_ELASTICSEARCH_HEAP or SINKBENCH_WORKERS",
                invalidates=True,
            )


def little_disk(facts: Facts) -> Iterator[Found]:
    free, least = facts.machine.free_bytes, facts.machine.least_free_bytes
    if free is not None and free < least:
        yield Found(
            "disk",
            f"{free / 1e9:.1f} GB free where the services keep their data, at least {least / 1e9:.0f} GB are needed",
            "a race does not begin",
            "free some, or (local stack) set SINKBENCH_HOME to a folder on another disk",
            invalidates=True,
        )


RULES = (
    Rule("little-memory", (Area.MEMORY,), little_memory),
    Rule("little-disk", (Area.DISK,), little_disk),
)
