"""A claim's plan, cut down to what its claims are about, and whether a run is of it. Pure."""

from collections.abc import Sequence
from typing import Any

from sinkbench.claims.models import COUNTED, Arithmetic, Claim, Failure
from sinkbench.plan.entries import PipelineEntry
from sinkbench.plan.plan import CapacityPlan, FaultsPlan, Plan, kafka_loads
from sinkbench.results import RunSummary

COUNTING = {"pilot_seconds": 2.0, "warm_up_seconds": 10.0, "warm_up_budget_seconds": 0.0}
"""The drain of what is counted, which a cold JVM does not change."""
BESIDE = {**COUNTING, "window_seconds": 4.0}
"""That of a pipeline of which no claim says anything."""


def narrowed(plan: Plan, claims: Sequence[Claim], workers: int, trials: int | None = None) -> Plan:
    """The plan with only the cells on `workers` workers, and the loads on Kafka alone, that the claims name; in one
    trial each if all of them count, else in `trials` at most. A plan races one pipeline at least."""
    shapes = [each for claim in claims for each in claim.shape or () if not isinstance(each, Arithmetic)]
    wanted = [cell for claim in claims for cell in claim.cells]
    labels = {each.label for each in wanted}

    def of_claims(entry: PipelineEntry) -> PipelineEntry:
        tasks = {each.tasks for each in wanted if each.label == entry.shown_name}
        multiples = tuple(each for each in plan.multiples_of(entry) if tasks & {None, each * workers})
        # On another number of workers than the claims' none may match, and a pipeline has one at least.
        return entry.model_copy(update={"multiples": multiples or plan.multiples_of(entry)})

    named = tuple(of_claims(entry) for entry in plan.pipelines if entry.shown_name in labels)
    changes: dict[str, Any] = {"pipelines": named or plan.pipelines[:1]}
    # The slowest to become warm take the time of all, as in the whole plan.
    budget = plan.drain.warm_up_budget_seconds * len(plan.pipelines) / len(changes["pipelines"])
    drain: dict[str, float] = {"warm_up_budget_seconds": budget}
    loads = kafka_loads(plan)
    # Of these a block that was cold is not taken again.
    changes["trials"] = min(plan.trials, (trials or plan.trials) + bool(loads))
    if all(isinstance(each, Failure) or each.figure in COUNTED for each in shapes):
        changes["trials"] = 1
        drain |= COUNTING
    changes["drain"] = plan.drain.model_copy(update=drain if named else drain | BESIDE)
    if not any(not isinstance(each, Failure) and each.figure == "efficiency" for each in shapes):
        changes["limits"] = False
    if loads:
        changes["kafka"] = tuple(each for each in loads if each.label in labels)
    if isinstance(plan, FaultsPlan) and None not in (faults := {each.fault for each in wanted}):
        changes["faults"] = tuple(each for each in plan.faults if each.name in faults)
    if isinstance(plan, CapacityPlan):
        shares = {each.of_capacity for each in wanted}
        capacity = {"of_capacity": tuple(each for each in plan.capacity.of_capacity if each in shares)}
        readers = {each.readers or 0 for each in wanted}
        changes["capacity"] = plan.capacity.model_copy(update=capacity)
        changes["sustain"] = plan.sustain.model_copy(
            update={"readers": tuple(each for each in plan.sustain.readers if each in readers)}
        )
    cut = plan.model_copy(update=changes)
    # Its parts are no longer where the file has them.
    cut._source = None
    return cut


def is_of(run: RunSummary, plan: Plan) -> bool:
    """Whether the pipelines of a run are configured as the plan says, all that have the name of one of its own."""
    own = {each.shown_name: each for each in plan.pipelines}
    cells = [(cell, own[cell.label]) for cell in run.cells if cell.label in own]
    return all(
        (cell.overrides, cell.settings, cell.target) == (dict(entry.overrides), entry.settings, entry.target)
        for cell, entry in cells
    )
