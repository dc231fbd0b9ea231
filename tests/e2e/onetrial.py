"""One trial in this process, of few records, for what a whole race would show too late or not for certain."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sinkbench.analysis.samples import Sample
from sinkbench.load.records import keep_records
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.plan import load_plan
from sinkbench.results import TrialRecord
from sinkbench.settings import CHECKOUT
from sinkbench.stack import Stack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names
from sinkbench.trial.resources import Resources
from sinkbench.trial.trial import run_trial
from sinkbench.trial.workload import Workload
from sinkbench.trial.workloads.drain import Drain, LiveRescale
from sinkbench.trial.workloads.fault import Fault
from sinkbench.trial.workloads.sustain import records_offered
from tests.support.silent import Silent


def one_trial(
    stack: Stack,
    folder: Path,
    text: str,
    records: int | None = None,
    *,
    cell: int = 0,
    observer: Silent | None = None,
    checkout: Path = CHECKOUT,
) -> tuple[TrialRecord, Sequence[Sample]]:
    """Takes a trial of the plan's cell of that number, without a pilot, and removes what it has made.

    A drain; of a cell with a fault that, under its load, or in the drain of its backlog.
    """
    (folder / "mine.yaml").write_text(text)
    plan = load_plan(folder / "mine.yaml", checkout / "connectors").seeded()
    names, chosen = Names.of("5eeded_001"), expand(plan, stack.workers)[cell]
    with (
        keep_records(plan.load, lambda: stack.endpoints) as kept,
        closing(Cluster(stack, plan, checkout, kept)) as cluster,
    ):
        count = records or chosen.backlog or records_offered(plan, chosen.offered or 0.0)
        own = Resources(cluster, chosen, names, count, observer or Silent())
        try:
            taken = run_trial(own, _workload(chosen), 1)
            return taken.record, taken.samples
        finally:
            own.remove()


def _workload(cell: Cell) -> Workload:
    if cell.fault is not None:
        return Fault(cell.offered, cell.fault)
    return Drain() if cell.before is None else LiveRescale()
