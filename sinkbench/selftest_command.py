"""The commands `sinkbench selftest ...`: the benchmark measures itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel
from rich.console import Console

from sinkbench import table
from sinkbench.errors import EXIT_CHECK_FAILED, PlanError
from sinkbench.plan import Plan, known_pipelines
from sinkbench.results import TrialRecord
from sinkbench.running import run_plan
from sinkbench.selftest import (
    LABELS,
    noise_lines,
    noise_of,
    noise_plan,
    overhead_lines,
    overhead_of,
    overhead_plan,
)
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack.choice import open_stack
from sinkbench.store import read_summary, read_trials
from sinkbench.suggest import did_you_mean
from sinkbench.summarize import valid_by_block

__all__ = ["selftest"]

selftest = typer.Typer(no_args_is_help=True, help=__doc__)


@selftest.callback()
def _group() -> None:
    """How far the figures of this machine can be trusted."""


PIPELINE = "postgres/jdbc"
Minutes = Annotated[float, typer.Option(min=1, max=1440, help="how long blocks are taken")]
Results = Annotated[Path, typer.Option(help="folder for the results of all runs")]
StackName = Annotated[
    str | None, typer.Option("--stack", help="local, compose, or a stack file (default: SINKBENCH_STACK, else local)")
]
TOO_FEW = "Fewer than 5 blocks in which both are valid: too few to compare; give it more --minutes."


@selftest.command()
def noise(
    pipeline: Annotated[str, typer.Argument(help="the pipeline that is raced against itself")] = PIPELINE,
    minutes: Minutes = 10,
    results: Results = Path("results"),
    stack_name: StackName = None,
) -> None:
    """Races a pipeline against itself: how often a difference is claimed, and the smallest that would be found.

    Exit code 1 if a cell does not pass, or the trials are too few to tell.
    """

    def found(trials: Sequence[TrialRecord]) -> tuple[dict[str, BaseModel], list[str]]:
        outcome = noise_of(*(valid_by_block(trial for trial in trials if trial.label == label) for label in LABELS))
        return ({}, [TOO_FEW]) if outcome is None else ({"noise": outcome}, noise_lines(outcome, pipeline))

    _race(pipeline, noise_plan, minutes, results, stack_name, found)


@selftest.command()
def overhead(
    pipeline: Annotated[str, typer.Argument(help="the pipeline that is raced with and without probes")] = PIPELINE,
    minutes: Minutes = 10,
    results: Results = Path("results"),
    stack_name: StackName = None,
) -> None:
    """Races a pipeline with all probes against the same with none: what looking costs.

    Exit code 1 if a cell does not pass, or the trials are too few to tell.
    """

    def found(trials: Sequence[TrialRecord]) -> tuple[dict[str, BaseModel], list[str]]:
        outcome = overhead_of(trials)
        return ({}, [TOO_FEW]) if outcome is None else ({"overhead": outcome}, overhead_lines(outcome, pipeline))

    _race(pipeline, overhead_plan, minutes, results, stack_name, found)


def _race(
    pipeline: str,
    plan: Callable[[str, float], Plan],
    minutes: float,
    results: Path,
    stack_name: str | None,
    found: Callable[[Sequence[TrialRecord]], tuple[dict[str, BaseModel], list[str]]],
) -> None:
    """Races the plan of a selftest, and puts what its trials show into the run's summary and below its table."""
    known = known_pipelines(CHECKOUT / "connectors")
    if pipeline not in known:
        raise PlanError(f"unknown pipeline '{pipeline}'{did_you_mean(pipeline, known)}")
    settings = load_settings()
    stack = open_stack(stack_name or settings.stack, settings)
    console = Console(soft_wrap=True)
    folder, summary = run_plan(stack, plan(pipeline, minutes), results, console, 60 * minutes)
    outcome, lines = found(read_trials(folder.trials_path))
    if outcome:
        folder.write_summary(summary.model_copy(update=outcome))
    table.show(read_summary(folder.path))
    for line in [*lines, f"results: {folder.path}"]:
        console.print(line, markup=False, highlight=False)
    if not (outcome and summary.passed):
        raise typer.Exit(EXIT_CHECK_FAILED)
