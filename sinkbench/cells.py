"""The cells of a plan, and the order in which their trials are taken."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sinkbench.errors import PlanError
from sinkbench.plan import Plan

__all__ = ["Cell", "blocks", "expand"]


@dataclass(frozen=True)
class Cell:
    """One point of a plan: a pipeline at a number of workers and tasks under the plan's load."""

    label: str
    pipeline: str
    sink: str
    multiple: int
    workers: int
    overrides: Mapping[str, str] = field(default_factory=dict, hash=False)
    mode: str = "drain"
    offered: float | None = None
    """The rate that a trial under `sustain` offers, in records per second."""
    before: int | None = None
    """The multiple that a trial starts with, before it is given `multiple` in the middle of its drain."""
    probes: bool = True
    """Whether the services are looked at while a trial runs."""

    @property
    def tasks(self) -> int:
        return self.multiple * self.workers

    @property
    def tasks_before(self) -> int | None:
        """The tasks that a trial starts with, where these are not those that it is given later."""
        return None if self.before is None else self.before * self.workers

    @property
    def key(self) -> str:
        """What tells this cell from all others of its plan: label, workers and multiple, as `postgres/jdbc@3x2`.

        With a rate that is offered, that too: `postgres/jdbc@3x2@5000`. If it starts with another multiple, that as
        well: `postgres/jdbc@3x1to2`.
        """
        if self.before is not None:
            return f"{self.label}@{self.workers}x{self.before}to{self.multiple}"
        return self.place if self.offered is None else f"{self.place}@{self.offered:.15g}"

    def identity(self) -> dict[str, Any]:
        """The fields by which a trial's record, and a cell's summary, say of which cell they are."""
        return {
            "cell": self.key,
            "label": self.label,
            "pipeline": self.pipeline,
            "sink": self.sink,
            "mode": self.mode,
            "workers": self.workers,
            "tasks": self.tasks,
            "tasks_per_worker": self.multiple,
            "overrides": dict(self.overrides),
        }

    @property
    def place(self) -> str:
        """The same for cells that differ only in the rate offered, or in the multiple before: `postgres/jdbc@3x2`."""
        return f"{self.label}@{self.workers}x{self.multiple}"


def expand(plan: Plan, workers: int) -> list[Cell]:
    """All cells of a plan on so many workers: pipelines in the plan's order, each with its multiples in theirs.

    Under `rescale` these are cold starts, and after them come the steps from each multiple to the next, and back.

    Raises PlanError if a cell would have more tasks than the topic has partitions, since the rest of them would have
    nothing to do. ValueError if there is not at least one worker.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, found {workers}")
    cells = []
    for index, entry in enumerate(plan.pipelines):
        for place, multiple in enumerate(plan.multiples_of(entry)):
            cell = Cell(
                entry.shown_name,
                entry.pipeline,
                entry.sink,
                multiple,
                workers,
                entry.overrides,
                "drain" if plan.drains else plan.mode,
                probes=entry.probes,
            )
            if cell.tasks > plan.load.partitions:
                raise PlanError(f"{_where(plan, index, place)}: {_too_many(cell, plan.load.partitions)}")
            rates = plan.rates_of(entry)
            cells += [replace(cell, offered=rate) for rate in rates] if rates else [cell]
        if plan.mode == "rescale":
            cells += [replace(cell, multiple=multiple, before=before) for before, multiple in plan.steps_of(entry)]
    return cells


def blocks(cells: Sequence[Cell], trials: int, seed: int) -> list[list[Cell]]:
    """The order of trials: `trials` blocks, each with every cell once, in a random order drawn from `seed`.

    The same arguments give the same order. Drift of the machine (heat, a neighbour, a cache that fills) thereby
    falls on all cells alike instead of on those that happen to be last.
    """
    draw = random.Random(seed)
    return [draw.sample(cells, len(cells)) for _ in range(trials)]


def _where(plan: Plan, index: int, place: int) -> str:
    if plan.pipelines[index].multiples is not None:
        return plan.where("pipelines", index, "multiples", place)
    # A plan that leaves multiples to the default has no line for them; the pipeline is the next best.
    return plan.where("multiples", place) if "multiples" in plan.model_fields_set else plan.where("pipelines", index)


def _too_many(cell: Cell, partitions: int) -> str:
    most = partitions // cell.workers
    mend = f"raise load.partitions to {cell.tasks}"
    mend += f" or lower the multiple to {most}" if most else " or start fewer workers"
    return (
        f"multiple {cell.multiple} on {cell.workers} workers makes {cell.tasks} tasks of {cell.label},"
        f" but the topic has {partitions} partitions; {mend}"
    )
