"""The disk that the fault `fill` fills."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager

import psutil

from sinkbench.errors import ReasonCode, TrialFailed
from sinkbench.plan.cells import Cell
from sinkbench.sinks import SMALL_DISK, FullDisk, needed, sink_kind
from sinkbench.stack.smalldisk import SmallDisk
from sinkbench.trial.bench import Bench
from sinkbench.trial.names import Names

__all__ = ["disk_to_fill"]

# What a record takes with its indexes and its rows' heads, at most, by its own size; and what an empty table takes.
TIMES, EMPTY_BYTES = 20, 256 * 2**20
# What it takes as a rule.
USUAL_TIMES = 3


@contextmanager
def disk_to_fill(bench: Bench, cell: Cell, names: Names, records: int) -> Iterator[FullDisk]:
    """The disk of the trial's target, which is there already, as long as the context lasts.

    Args:
        bench, cell, names: the trial.
        records: how many it is to store; there is room for all of them while the disk is not filled.

    Raises:
        TrialFailed: what is to lie on it does not fit the memory.
        ServiceError: it cannot be had, or what lies on it cannot be taken away in the end.
    """
    load, free = records * bench.value_bytes(cell.form), psutil.virtual_memory().available
    if sink_kind(cell.sink).full_disk == SMALL_DISK and USUAL_TIMES * load > free / 2:
        raise TrialFailed(
            f"{records:,} records of {bench.value_bytes(cell.form):.0f} bytes do not fit a small disk, which lies in"
            f" memory: {free / 2**30:.1f} GiB are available; make sustain.seconds or the rate smaller",
            ReasonCode.DISK_TOO_SMALL,
        )
    size = round(TIMES * load) + EMPTY_BYTES

    def small_disk() -> AbstractContextManager[SmallDisk]:
        return needed(needed(bench.stack.faults, "faults").small_disks, "small_disks").mounted(size)

    with (
        closing(bench.another_sink(cell.sink)) as sink,
        needed(sink.capabilities.disk_to_fill, "disk_to_fill").disk(names.target, small_disk) as disk,
    ):
        yield disk
