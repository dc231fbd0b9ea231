"""Cells, trials, samples and runs that nobody took: each builder fills in what a test does not care about."""

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from sinkbench.analysis.limits import with_block
from sinkbench.analysis.samples import Sample
from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan, load_plan
from sinkbench.results import Audit, CellSummary, Limit, LimitInBlock, PlanRef, RatePerSecond, RunSummary, TrialRecord
from sinkbench.settings import CHECKOUT
from sinkbench.summary.selftest import PROBES
from tests.support.reasons import because


def plan_of(*pipelines: object, **keys: object) -> Plan:
    """A plan of these pipelines, or of postgres/jdbc."""
    return Plan.model_validate({"name": "p", "pipelines": list(pipelines) or ["postgres/jdbc"], **keys})


def plan_in(folder: Path, text: str, connectors: Path = CHECKOUT / "connectors") -> Plan:
    """The plan of this text, read from a file mine.yaml in that folder."""
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    return load_plan(folder / "mine.yaml", connectors)


def quick_plan(*pipelines: str, trials: int = 1, window: float = 4, warm_up: float = 2) -> str:
    """The text of a plan of these pipelines, each of whose trials takes some seconds, on a stack that runs."""
    drain = f"compiling_percent: 100, window_seconds: {window}, pilot_seconds: 1, warm_up_seconds: {warm_up}"
    return f"pipelines: [{', '.join(pipelines)}]\ntrials: {trials}\ndrain: {{{drain}}}\n"


def a_cell(pipeline: str = "postgres/jdbc", multiple: int = 1, workers: int = 3, **fields: Any) -> Cell:
    """A cell of that pipeline; `label` is the pipeline's name unless another is given."""
    label = fields.pop("label", pipeline)
    return Cell(label, pipeline, pipeline.split("/")[0], multiple, workers, **fields)


JDBC = a_cell()
CELL = a_cell(multiple=8)
OTHER = a_cell("elasticsearch/camel-bulk")
CLEAN = Audit(produced=100, stored=100, lost=0, duplicates=0)


def trial(
    rate: float | None = 1000.0, cell: Cell = CELL, *, invalid: Sequence[str] = (), **fields: object
) -> TrialRecord:
    """A trial of that cell at that rate; `invalid` holds the texts of the reasons why it does not count."""
    bare = {
        "trial": "t1",
        "block": 1,
        **cell.identity(),
        "started_at": "2026-01-31T17:06:00Z",
        "seconds": 20.0,
        "records": 100,
        "records_per_second": rate,
        "audit": CLEAN,
        "reasons": [because(text, ReasonCode.UNKNOWN) for text in invalid],
    }
    return TrialRecord.model_validate({**bare, **fields})


def cell_summary(
    label: str = "postgres/jdbc", *rates: float, tasks: int = 3, invalid: Sequence[str] = (), **fields: object
) -> CellSummary:
    """What trials at these rates have come to on three workers; without rates, as no rate was measured."""
    values = sorted(rates)
    rate = (
        RatePerSecond(median=values[len(values) // 2], low=values[0], high=values[-1], values=values) if rates else None
    )
    bare = {
        "cell": f"{label}@3x{tasks // 3}",
        "label": label,
        "pipeline": label,
        "sink": label.split("/")[0],
        "mode": "drain",
        "workers": 3,
        "tasks": tasks,
        "tasks_per_worker": tasks / 3,
        "trials": len(rates),
        "records_per_second": rate,
        "passed": not invalid,
        "verdict": f"invalid: {invalid[0]}" if invalid else "ok",
        "reasons": [because(text, ReasonCode.UNKNOWN) for text in invalid],
        "faults": [because(f"invalid: {invalid[0]}", ReasonCode.INVALID)] if invalid else [],
    }
    return CellSummary.model_validate({**bare, **fields})


def cell_in_blocks(label: str, *rates: float, blocks: Sequence[int] = (), **fields: Any) -> CellSummary:
    """A cell with these rates in the blocks from 1 on, or in those given."""
    cell = cell_summary(label, *rates, **fields)
    by_block = {"values": list(rates), "blocks": list(blocks or range(1, len(rates) + 1))}
    rate = cell.records_per_second
    return cell.model_copy(update={"records_per_second": rate and rate.model_copy(update=by_block)})


def run_summary(*cells: CellSummary, **fields: object) -> RunSummary:
    """A complete run of these cells."""
    plan = PlanRef(name="mine", sha256="0", seed=1, trials=3)
    bare = {"run": "r", "complete": True, "plan": plan, "cells": list(cells)}
    return RunSummary.model_validate({**bare, **fields})


def sample(seconds: float, stored: int | None, **read: Any) -> Sample:
    """A sample of which nothing was read but what is given."""
    return Sample(seconds, stored, **read)


def drain_of(cores: Mapping[str, float], rate: float = 100, **signs: float) -> list[Sample]:
    """A drain of ten seconds at this rate by services that use so many cores; `signs` rise by so much a second."""
    return [
        sample(
            at,
            int(rate * at),
            cpu_seconds={name: 5 + used * at for name, used in cores.items()},
            signs={name: 50 + rise * at for name, rise in signs.items()},
        )
        for at in range(11)
    ]


def limit_over(searched: Limit, *rates: float | None) -> Limit:
    """The limit with these rates in the blocks from 1 on; a block without one was refused."""
    found = [
        LimitInBlock(block=block, records_per_second=rate, problem=None if rate else "429")
        for block, rate in enumerate(rates, start=1)
    ]
    return reduce(with_block, found, searched)


def config_of(pipeline: str) -> dict[str, str]:
    """What a connector file of the checkout holds."""
    config: dict[str, str] = json.loads((CHECKOUT / "connectors" / f"{pipeline}.json").read_text())["config"]
    return config


def connectors_in(folder: Path, *pipelines: str, text: str = "{}") -> Path:
    """The folder `connectors` below that folder, with a file of this text for each pipeline."""
    for name in pipelines:
        file = folder / "connectors" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder / "connectors"


def watched_and_not(count: int, lost: float) -> list[TrialRecord]:
    """Trials with probes that cost that share of the rate, and without."""
    draw = np.random.default_rng(1)
    made = []
    for block in range(1, count + 1):
        slow = draw.uniform(0.5, 1)
        for label, probes in PROBES.items():
            rate = 80_000 * slow * np.exp(0.01 * draw.standard_normal()) * (1 - lost if probes else 1)
            cell = a_cell(label=label, probes=probes)
            made.append(trial(rate, cell, block=block, stamped_records_per_second=rate))
    return made
