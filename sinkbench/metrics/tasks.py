"""The tasks of a cell, and their workers."""

import json

from sinkbench.analysis.rates import usable_rate
from sinkbench.analysis.words import significant
from sinkbench.metrics.metric import Column, Export, Fields, Metric, Value, count, find, number, words
from sinkbench.metrics.rate import CELLS
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, RunSummary


def tasks_per_worker(cell: CellSummary, _: RunSummary) -> str:
    return f"{cell.tasks} ({significant(cell.tasks_per_worker)})"


def _of_cell(taken: Taken) -> Fields:
    trials, last_first = taken.trials, [*reversed(taken.valid), *reversed(taken.trials)]
    return {
        "placement": next((trial.placement for trial in last_first if trial.placement), {}),
        "connector": next((trial.connector for trial in trials if trial.connector), None),
        "trials": len(trials),
        "failed_tasks": max((trial.failed_tasks for trial in trials), default=0),
        "failure": next((trial.failure for trial in trials if trial.failure), None),
    }


def _json(value: object) -> Value:
    return json.dumps(value, ensure_ascii=False) if value else None


METRICS = (
    Metric(
        "Tasks",
        of_cell=_of_cell,
        columns=[Column(CELLS, 10, "tasks\n(per\nworker)", tasks_per_worker)],
        heads=["tasks"],
        exports=[
            *map(words, ("cell", "label", "pipeline", "sink", "mode")),
            *map(count, ("workers", "tasks")),
            number("tasks_per_worker"),
            count("tasks_before", "rescale.tasks_before"),
            Export("overrides", "VARCHAR", lambda cell, _: _json(cell.overrides)),
            *map(words, ("target", "form")),
        ],
    ),
    Metric(
        "Placement",
        place=20,
        exports=[
            count("partitions"),
            words("acks"),
            Export("settings", "VARCHAR", lambda cell, _: _json(cell.settings)),
            Export("variables", "VARCHAR", lambda cell, _: _json(cell.variables)),
            count("trials"),
            Export("valid_trials", "BIGINT", lambda cell, _: len(find(usable_rate(cell), "values") or [])),
        ],
    ),
)
