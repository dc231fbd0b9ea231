"""Contexts for faults of a sink: a disk that can be filled, and roles that are restored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager

import psutil

from sinkbench.errors import ReasonCode, TrialFailed
from sinkbench.sinks import SMALL_DISK, FullDisk, needed, sink_kind
from sinkbench.stack.smalldisk import SmallDisk
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.resources import Resources

# Maximum space of a record with indexes and row headers, as a multiple of its size; and of an empty table.
TIMES, EMPTY_BYTES = 20, 256 * 2**20
# Usual multiple.
USUAL_TIMES = 3


@contextmanager
def disk_to_fill(own: Resources) -> Iterator[FullDisk]:
    """Moves the target to a disk that can be filled, and has room for all records, within the context.

    Raises TrialFailed if the disk does not fit the memory, and ServiceError if it cannot be created or removed.
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
    """Makes the first node the primary again at the end of the context. Raises StackError."""
    try:
        yield
    finally:
        try:
            needed(needed(cluster.stack.faults, "faults").promotion(sink), "promotion").restore()
        finally:
            # Connections to the interim primary are broken.
            cluster.refresh()
