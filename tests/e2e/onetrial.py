"""One trial in this process, of few records, for what a whole race would show too late or not for certain."""

import json
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sinkbench.analysis.samples import Sample
from sinkbench.errors import ReasonCode
from sinkbench.load.records import keep_records
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.plan import PlanDrain
from sinkbench.plan.sizing import is_too_short
from sinkbench.results import Reason, TrialRecord
from sinkbench.settings import CHECKOUT
from sinkbench.stack import Stack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names
from sinkbench.trial.observer import Observer
from sinkbench.trial.resources import Resources
from sinkbench.trial.trial import run_trial
from sinkbench.trial.workload import Workload
from sinkbench.trial.workloads.drain import Drain, LiveRescale
from sinkbench.trial.workloads.fault import Fault
from sinkbench.trial.workloads.sustain import records_offered
from tests.support.trials import plan_in

PARTITIONS = 6
NAMES = Names.of("5eeded_001")
"""What `one_trial` calls its things."""


def one_trial(
    stack: Stack,
    folder: Path,
    text: str,
    records: int | None = None,
    *,
    cell: int = 0,
    observer: Observer | None = None,
    checkout: Path = CHECKOUT,
) -> tuple[TrialRecord, Sequence[Sample]]:
    """Takes a trial of the plan's cell of that number, without a pilot, and removes what it has made.

    A drain; of a cell with a fault that, under its load, or in the drain of its backlog.
    """
    plan = plan_in(folder, text, checkout / "connectors").seeded()
    chosen = expand(plan, stack.workers)[cell]
    with (
        keep_records(plan.load, lambda: stack.endpoints) as kept,
        closing(Cluster(stack, plan, checkout, kept)) as cluster,
    ):
        count = records or chosen.backlog or records_offered(plan, chosen.offered or 0.0)
        own = Resources(cluster, chosen, NAMES, count, observer or Observer())
        try:
            return run_trial(own, _workload(chosen), 1)
        finally:
            own.remove()


def taken(
    stack: Stack, folder: Path, pipeline: str, target: str = "", records: int = 5_000, observer: Observer | None = None
) -> TrialRecord:
    """A trial of that pipeline, or entry of a plan, into that target, from few partitions."""
    entry = f"{{pipeline: {pipeline}, target: {target}}}" if target else pipeline
    plan = f"pipelines: [{entry}]\nload: {{partitions: {PARTITIONS}}}\ndrain: {{compiling_percent: 100}}\n"
    record, _ = one_trial(stack, folder, plan, records, observer=observer)
    return record


def reasons_but_size(record: TrialRecord) -> list[Reason]:
    """Why it does not count, but that so few records are gone before there is a rate, or the tasks were looked at."""
    if is_too_short(record, PlanDrain().window_seconds):
        return []
    return [each for each in record.reasons if each.code != ReasonCode.TOO_SHORT]


def checkout_with(folder: Path, schema: str) -> Path:
    """A checkout in that folder, as far as trials need it, with another file of PostgreSQL's table."""
    for name in ("connectors", "elasticsearch", "postgres"):
        shutil.copytree(CHECKOUT / name, folder / name)
    (folder / "postgres" / "schema.sql").write_text(schema)
    return folder


def index_with(folder: Path, name: str = "index.json", **settings: Any) -> Path:
    """A file with the checkout's index, but for these settings; `mappings` are added to its own."""
    body = json.loads((CHECKOUT / "elasticsearch" / "index.json").read_text())
    body["mappings"].update(settings.pop("mappings", {}))
    body["settings"].update(settings)
    (folder / name).write_text(json.dumps(body))
    return folder / name


def _workload(cell: Cell) -> Workload:
    if cell.fault is not None:
        return Fault(cell.offered, cell.fault)
    return Drain() if cell.before is None else LiveRescale()
