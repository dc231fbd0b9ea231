"""The cells of a plan, and the order of their trials."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from loadgen.forms import DOCUMENT, Form
from sinkbench.errors import PlanError
from sinkbench.plan.entries import Acks, DrainEntry, PipelineEntry, SustainEntry
from sinkbench.plan.faults import PlanFault
from sinkbench.plan.plan import CapacityPlan, FaultsPlan, Plan, RescalePlan, SustainPlan


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
    """Records per second."""
    of_capacity: float | None = None
    """Share of its place's capacity that is offered, once the run has found that."""
    before: int | None = None
    """First multiple of a re-scale trial, which changes to `multiple` during its drain."""
    probes: bool = True
    reads: float | None = None
    """Queries per second during the load."""
    reads_from: str | None = None
    """`standby` if that gets them; None: the primary."""
    readers: int = 0
    """Further consumer groups that read the topic during the load."""
    target: str | None = None
    """File of its index or table, absolute or in the checkout; None: the sink's default."""
    rows_before: int = 0
    """Rows in the index or table before each trial."""
    form: Form = DOCUMENT
    partitions: int = 24
    acks: Acks = "all"
    arm: str | None = None
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    """Settings of the sink's services during a trial, by service."""
    variables: tuple[tuple[str, str], ...] = ()
    """Sorted variables of the run scripts of its stack, a sibling; empty: of the stack itself."""
    fault: PlanFault | None = field(default=None, hash=False)
    backlog: int | None = None
    """Records in the topic before the connector starts, with a fault; None: they come at the offered rate."""

    @property
    def tasks(self) -> int:
        return self.multiple * self.workers

    @property
    def tasks_before(self) -> int | None:
        return None if self.before is None else self.before * self.workers

    @property
    def at_start(self) -> "Cell":
        """The cell at the start of a trial, with the multiple before a re-scale."""
        return self if self.before is None else replace(self, multiple=self.before, before=None)

    @property
    def key(self) -> str:
        """The cell's name within its plan: label@WORKERSxMULTIPLE, as `postgres/jdbc@3x2`.

        With a rate and reads `postgres/jdbc@3x2@5000+20r`, with two readers `postgres/jdbc@3x2+2g@5000`, at a share of
        its capacity `postgres/jdbc@3x2@80%`; a re-scale `postgres/jdbc@3x1to2`; a fault at a rate
        `postgres/jdbc@3x2@5000!kill worker`, with a backlog `postgres/jdbc@3x2@300000b!kill worker`."""
        if self.before is not None:
            return f"{self.label}@{self.workers}x{self.before}to{self.multiple}"
        if self.of_capacity is not None:
            return f"{self.beside}@{100 * self.of_capacity:.15g}%"
        reads = "" if self.reads is None else f"+{self.reads:.15g}r"
        fault = "" if self.fault is None else f"!{self.fault.name}"
        if self.backlog is not None:
            return f"{self.place}@{self.backlog}b{fault}"
        return self.beside if self.offered is None else f"{self.beside}@{self.offered:.15g}{reads}{fault}"

    def identity(self) -> dict[str, Any]:
        alike = ("label", "pipeline", "sink", "mode", "workers", "tasks", "target", "form", "partitions", "acks", "arm")
        return {
            "cell": self.key,
            **{name: getattr(self, name) for name in (*alike, "of_capacity")},
            "tasks_per_worker": self.multiple,
            "overrides": dict(self.overrides),
            "settings": {service: dict(given) for service, given in self.settings.items()},
            "variables": dict(self.variables),
            "reads_per_second": self.reads,
            "reads_from": self.reads_from if self.reads else None,
            "readers": self.readers or None,
            "backlog_records": self.backlog,
            "fault": None if self.fault is None else self.fault.name,
        }

    @property
    def place(self) -> str:
        """The key without load and multiple before: cells of one place share pilot and cold start."""
        return f"{self.label}@{self.workers}x{self.multiple}"

    @property
    def beside(self) -> str:
        """The place with the cell's readers: shares of a capacity are of the cell with this key."""
        return f"{self.place}+{self.readers}g" if self.readers else self.place


def expand(plan: Plan, workers: int) -> list[Cell]:
    """Returns all cells of a plan on `workers` workers, in the plan's order; under `rescale` cold starts before steps.

    Raises PlanError if a cell would have more tasks than partitions, which would leave tasks idle."""
    if workers < 1:
        raise ValueError(f"workers must be at least 1, found {workers}")

    def on_these(multiple: int) -> int:
        return math.ceil(multiple * (plan.workers or workers) / workers)

    cells = []
    for index, entry in enumerate(plan.pipelines):
        for place, multiple in enumerate(plan.multiples_of(entry)):
            cell = _cell(plan, entry, on_these(multiple), workers)
            if cell.tasks > cell.partitions:
                own = entry.multiples is not None or "multiples" not in plan.model_fields_set
                key = "load.partitions" if entry.partitions is None else "partitions"
                at = plan.where("pipelines", index) if own else plan.where("multiples", place)
                raise PlanError(
                    f"{at}: multiple {cell.multiple} on {workers} workers makes {cell.tasks} tasks of"
                    f" {cell.label}, but the topic has {cell.partitions} partitions; raise {key} to"
                    f" {cell.tasks} or lower the multiple"
                )
            readers = plan.sustain.readers if isinstance(plan, CapacityPlan | SustainPlan) else (0,)
            cells += [each for count in readers for each in _under_load(plan, entry, replace(cell, readers=count))]
        if isinstance(plan, RescalePlan):
            steps = [(on_these(before), on_these(after)) for before, after in plan.steps_of(entry)]
            steps = [(before, after) for before, after in steps if before != after]
            cells += [replace(_cell(plan, entry, after, workers), before=before) for before, after in steps]
    # On more workers two multiples can be the same.
    return list({cell.key: cell for cell in cells}.values())


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
        partitions=plan.partitions_of(entry),
        acks=plan.acks_of(entry),
        arm=entry.arm,
        settings=entry.settings,
        variables=tuple(sorted(entry.variables.items())),
    )
    return replace(cell, probes=entry.probes, rows_before=entry.rows_before) if isinstance(entry, DrainEntry) else cell


def _under_load(plan: Plan, entry: PipelineEntry, cell: Cell) -> list[Cell]:
    if isinstance(plan, SustainPlan):
        reads = plan.sustain.reads_per_second or (0,)
        cell = replace(cell, reads_from=entry.reads_from) if isinstance(entry, SustainEntry) else cell
        return [replace(cell, offered=rate, reads=each or None) for rate in plan.rates_of(entry) for each in reads]
    if isinstance(plan, CapacityPlan):
        return [cell, *(replace(cell, mode="sustain", of_capacity=share) for share in plan.capacity.of_capacity)]
    if isinstance(plan, FaultsPlan):
        faults = [each for each in plan.faults if each.applies_to(entry.unarmed)]
        if (backlog := plan.backlog_of(entry)) is not None:
            return [replace(cell, backlog=backlog, fault=fault) for fault in faults]
        return [replace(cell, offered=rate, fault=fault) for fault in faults for rate in plan.rates_of(entry)]
    return [cell]


def blocks(cells: Sequence[Cell], trials: int, seed: int) -> list[list[Cell]]:
    """Returns `trials` blocks, each with every cell once, in an order drawn from `seed`.

    So drift of the machine (heat, a neighbour, a cache that fills) affects all cells alike."""
    draw = random.Random(seed)
    return [draw.sample(cells, len(cells)) for _ in range(trials)]
