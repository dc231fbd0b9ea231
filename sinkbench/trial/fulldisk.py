"""The disk that the fault `fill` fills."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from sinkbench.plan.cells import Cell
from sinkbench.sinks import FullDisk
from sinkbench.trial.bench import Bench
from sinkbench.trial.names import Names

__all__ = ["disk_to_fill"]

# What a record takes with its indexes and its rows' heads, at most, by its own size; and what an empty table takes.
TIMES, EMPTY_BYTES = 20, 256 * 2**20


@contextmanager
def disk_to_fill(bench: Bench, cell: Cell, names: Names, records: int) -> Iterator[FullDisk]:
    """The disk of the trial's target, which is there already, as long as the context lasts.

    Args:
        bench, cell, names: the trial.
        records: how many it is to store; there is room for all of them while the disk is not filled.

    Raises:
        ServiceError: it cannot be had, or what lies on it cannot be taken away in the end.
    """
    size = round(TIMES * records * bench.value_bytes(cell.form)) + EMPTY_BYTES
    with (
        closing(bench.another_sink(cell.sink)) as sink,
        sink.disk_to_fill(names.target, partial(bench.stack.small_disk, size)) as disk,
    ):
        yield disk
