"""What a fault of a sink needs around its trial: a disk that can be filled, roles that are changed back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager

import psutil

from sinkbench.errors import ReasonCode, TrialFailed
from sinkbench.sinks import SMALL_DISK, FullDisk, needed, sink_kind
from sinkbench.stack.smalldisk import SmallDisk
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.resources import Resources

__all__ = ["disk_to_fill", "usual_roles"]

# What a record takes with its indexes and its rows' heads, at most, by its own size; and what an empty table takes.
TIMES, EMPTY_BYTES = 20, 256 * 2**20
# What it takes as a rule.
USUAL_TIMES = 3


@contextmanager
def disk_to_fill(own: Resources) -> Iterator[FullDisk]:
    """The disk of the trial's target, which is there already, as long as the context lasts.

    There is room for all of the trial's records while the disk is not filled.

    Raises:
        TrialFailed: what is to lie on it does not fit the memory.
        ServiceError: it cannot be had, or what lies on it cannot be taken away in the end.
    """
    cluster, records = own.cluster, own.records
    size = cluster.value_bytes(own.cell.form)
    load, free = records * size, psutil.virtual_memory().available
    if sink_kind(own.cell.sink).full_disk == SMALL_DISK and USUAL_TIMES * load > free / 2:
        raise TrialFailed(
            f"{records:,} records of {size:.0f} bytes do not fit a small disk, which lies in"
            f" memory: {free / 2**30:.1f} GiB are available; make sustain.seconds or the rate smaller",
            ReasonCode.DISK_TOO_SMALL,
        )

    def small() -> AbstractContextManager[SmallDisk]:
        disks = needed(needed(cluster.stack.faults, "faults").small_disks(own.cell.sink), "small_disks")
        return disks.mounted(round(TIMES * load) + EMPTY_BYTES)

    with closing(cluster.another_sink(own.cell.sink)) as sink:
        filled = needed(sink.capabilities.disk_to_fill, "disk_to_fill")
        with filled.disk(own.names.target, small) as disk:
            yield disk


@contextmanager
def usual_roles(cluster: Cluster, sink: str) -> Iterator[None]:
    """Has the primary be the first node again when the context is left, whatever happened in it. Raises StackError."""
    try:
        yield
    finally:
        try:
            needed(needed(cluster.stack.faults, "faults").promotion(sink), "promotion").restore()
        finally:
            # Connections to what was the primary meanwhile are of no more use.
            cluster.refresh()
