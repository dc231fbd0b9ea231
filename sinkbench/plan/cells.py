"""The cells of a plan, and the order in which their trials are taken."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from loadgen.forms import DOCUMENT, Form
from sinkbench.errors import PlanError
from sinkbench.plan.entries import Acks, DrainEntry, PipelineEntry
from sinkbench.plan.faults import PlanFault
from sinkbench.plan.plan import FaultsPlan, Plan, RescalePlan, SustainPlan


@dataclass(frozen=True)
class Cell:
    """One point of a plan: a pipeline at a number of workers and tasks, under the plan's load."""

    label: str
    pipeline: str
    sink: str
    multiple: int
    workers: int
    overrides: Mapping[str, str] = field(default_factory=dict, hash=False)
    mode: str = "drain"
    offered: float | None = None
    """The rate offered by a sustain trial, in records per second."""
    before: int | None = None
    """The multiple that a re-scale trial starts with; in the middle of its drain it changes to `multiple`."""
    probes: bool = True
    """Whether the services are probed while a trial runs."""
    reads: float | None = None
    """Queries per second at the same time as the load; None: none."""
    target: str | None = None
    """The file that says what its index or table is like, absolute or in the checkout; None: the sink's own."""
    rows_before: int = 0
    """Rows that are put into the index or table before each trial."""
    form: Form = DOCUMENT
    """What a record is on the topic."""
    acks: Acks = "all"
    """Who must acknowledge a record before it counts as sent."""
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    """What the sink's services are set to for the time of a trial, by the service."""
    fault: PlanFault | None = field(default=None, hash=False)
    """What is broken while the load is offered, or the backlog is drained; None: nothing is."""
    backlog: int | None = None
    """Records that are in the topic before the connector starts, under a fault; None: they come at the offered rate."""

    @property
    def tasks(self) -> int:
        return self.multiple * self.workers

    @property
    def tasks_before(self) -> int | None:
        """The tasks that a re-scale trial starts with; None for any other."""
        return None if self.before is None else self.before * self.workers

    @property
    def at_start(self) -> Cell:
        """The cell as a trial begins with it: with the multiple before, where it is given another one later."""
        return self if self.before is None else replace(self, multiple=self.before, before=None)

    @property
    def key(self) -> str:
        """The cell's name within its plan: label@WORKERSxMULTIPLE, as `postgres/jdbc@3x2`.

        With an offered rate `postgres/jdbc@3x2@5000`, and with reads `postgres/jdbc@3x2@5000+20r`; of a re-scale
        `postgres/jdbc@3x1to2`; with a fault `postgres/jdbc@3x2@5000!kill worker`, and in a drain
        `postgres/jdbc@3x2@300000b!kill worker`.
        """
        if self.before is not None:
            return f"{self.label}@{self.workers}x{self.before}to{self.multiple}"
        reads = "" if self.reads is None else f"+{self.reads:.15g}r"
        fault = "" if self.fault is None else f"!{self.fault.name}"
        if self.backlog is not None:
            return f"{self.place}@{self.backlog}b{fault}"
        return self.place if self.offered is None else f"{self.place}@{self.offered:.15g}{reads}{fault}"

    def identity(self) -> dict[str, Any]:
        """The fields that identify the cell in a trial's record and in a cell's summary."""
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
            "target": self.target,
            "form": self.form,
            "acks": self.acks,
            "settings": {service: dict(given) for service, given in self.settings.items()},
            "reads_per_second": self.reads,
            "backlog_records": self.backlog,
            "fault": None if self.fault is None else self.fault.name,
        }

    @property
    def place(self) -> str:
        """The key without offered rate and multiple before: cells with the same place share pilot and cold start."""
        return f"{self.label}@{self.workers}x{self.multiple}"


def expand(plan: Plan, workers: int) -> list[Cell]:
    """All cells of a plan on `workers` workers, at least 1, in the plan's order of pipelines and multiples.

    Under `rescale` each pipeline's cold starts come first, then its steps from each multiple to the next, and back.
    Raises PlanError if a cell would have more tasks than partitions: the others would have nothing to do.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, found {workers}")
    cells = []
    for index, entry in enumerate(plan.pipelines):
        for place, multiple in enumerate(plan.multiples_of(entry)):
            cell = _cell(plan, entry, multiple, workers)
            if cell.tasks > plan.load.partitions:
                raise PlanError(f"{_where(plan, index, place)}: {_too_many(cell, plan.load.partitions)}")
            cells += _under_load(plan, entry, cell)
        if isinstance(plan, RescalePlan):
            steps = plan.steps_of(entry)
            cells += [replace(_cell(plan, entry, multiple, workers), before=before) for before, multiple in steps]
    return cells


def _cell(plan: Plan, entry: PipelineEntry, multiple: int, workers: int) -> Cell:
    cell = Cell(
        entry.shown_name,
        entry.pipeline,
        entry.sink,
        multiple,
        workers,
        entry.overrides,
        "drain" if plan.drains else plan.mode,
        target=entry.target,
        form=plan.form_of(entry),
        acks=plan.acks_of(entry),
        settings=entry.settings,
    )
    return replace(cell, probes=entry.probes, rows_before=entry.rows_before) if isinstance(entry, DrainEntry) else cell


def _under_load(plan: Plan, entry: PipelineEntry, cell: Cell) -> list[Cell]:
    """The cell under each load, and with each fault, that the plan has for it."""
    if isinstance(plan, SustainPlan):
        reads = plan.sustain.reads_per_second or (0,)
        return [replace(cell, offered=rate, reads=each or None) for rate in plan.rates_of(entry) for each in reads]
    if isinstance(plan, FaultsPlan):
        faults = [each for each in plan.faults if each.applies_to(entry.shown_name)]
        if (backlog := plan.backlog_of(entry)) is not None:
            return [replace(cell, backlog=backlog, fault=fault) for fault in faults]
        return [replace(cell, offered=rate, fault=fault) for fault in faults for rate in plan.rates_of(entry)]
    return [cell]


def blocks(cells: Sequence[Cell], trials: int, seed: int) -> list[list[Cell]]:
    """`trials` blocks, each with every cell once, in an order drawn from `seed`.

    So drift of the machine (heat, a neighbour, a cache that fills) hits all cells alike, not only the last ones.
    """
    draw = random.Random(seed)
    return [draw.sample(cells, len(cells)) for _ in range(trials)]


def _where(plan: Plan, index: int, place: int) -> str:
    if plan.pipelines[index].multiples is not None:
        return plan.where("pipelines", index, "multiples", place)
    # Without a line for multiples, the pipeline's is the next best.
    return plan.where("multiples", place) if "multiples" in plan.model_fields_set else plan.where("pipelines", index)


def _too_many(cell: Cell, partitions: int) -> str:
    most = partitions // cell.workers
    mend = f"raise load.partitions to {cell.tasks}"
    mend += f" or lower the multiple to {most}" if most else " or start fewer workers"
    return (
        f"multiple {cell.multiple} on {cell.workers} workers makes {cell.tasks} tasks of {cell.label},"
        f" but the topic has {partitions} partitions; {mend}"
    )
