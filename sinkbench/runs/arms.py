"""The arms of a run, set against each other as two runs are."""

from dataclasses import replace
from typing import TypeVar

from pydantic import JsonValue

from sinkbench.results import CellSummary, TrialRecord
from sinkbench.runs.compare import Comparison, compare
from sinkbench.runs.differences import pipelines
from sinkbench.runs.reader import StoredRun

OfCell = TypeVar("OfCell", CellSummary, TrialRecord)


def compare_arms(run: StoredRun) -> list[Comparison]:
    """Each arm but the first compared with the first, by the blocks that both have; empty for a plan without arms."""
    names = list(dict.fromkeys(cell.arm for cell in run.summary.cells if cell.arm))
    return [compare(_only(run, names[0]), _only(run, name)) for name in names[1:]]


def _only(run: StoredRun, arm: str) -> StoredRun:
    """The run as if it had one arm, under the names that the cells have in all arms."""
    found = [each for each in pipelines(run.plan).values() if isinstance(each, dict) and each.get("arm") == arm]
    plain: list[JsonValue] = [{**one, "label": str(one["label"]).removesuffix(f" {arm}"), "arm": None} for one in found]
    cells = [_plain(cell, arm) for cell in run.summary.cells if cell.arm == arm]
    summary = run.summary.model_copy(update={"run": f"{run.summary.run} {arm}", "cells": cells})
    trials = [_plain(trial, arm) for trial in run.trials if trial.arm == arm]
    return replace(run, summary=summary, trials=trials, plan={**run.plan, "pipelines": plain})


def _plain(found: OfCell, arm: str) -> OfCell:
    label = found.label.removesuffix(f" {arm}")
    return found.model_copy(update={"label": label, "cell": found.cell.replace(found.label, label, 1)})
