"""The commands `sinkbench selftest ...`: the benchmark measures itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sinkbench import table
from sinkbench.errors import EXIT_CHECK_FAILED, PlanError
from sinkbench.plan import known_pipelines
from sinkbench.running import run_plan
from sinkbench.selftest import LABELS, noise_lines, noise_of, noise_plan
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


@selftest.command()
def noise(
    pipeline: Annotated[str, typer.Argument(help="the pipeline that is raced against itself")] = "postgres/jdbc",
    minutes: Annotated[float, typer.Option(min=1, max=1440, help="how long blocks are taken")] = 10,
    results: Annotated[Path, typer.Option(help="folder for the results of all runs")] = Path("results"),
    stack_name: Annotated[
        str | None,
        typer.Option("--stack", help="local, compose, or a stack file (default: SINKBENCH_STACK, else local)"),
    ] = None,
) -> None:
    """Races a pipeline against itself: how often a difference is claimed, and the smallest that would be found."""
    known = known_pipelines(CHECKOUT / "connectors")
    if pipeline not in known:
        raise PlanError(f"unknown pipeline '{pipeline}'{did_you_mean(pipeline, known)}")
    settings = load_settings()
    stack = open_stack(stack_name or settings.stack, settings)
    console = Console(soft_wrap=True)
    folder, summary = run_plan(stack, noise_plan(pipeline, minutes), results, console, 60 * minutes)
    trials = read_trials(folder.trials_path)
    first, second = (valid_by_block(trial for trial in trials if trial.label == label) for label in LABELS)
    found = noise_of(first, second)
    if found is not None:
        folder.write_summary(summary.model_copy(update={"noise": found}))
    table.show(read_summary(folder.path))
    lines = (
        ["Fewer than 5 blocks in which both are valid: too few to compare; give it more --minutes."]
        if found is None
        else noise_lines(found, pipeline)
    )
    for line in [*lines, f"results: {folder.path}"]:
        console.print(line, markup=False, highlight=False)
    if found is None or not summary.passed:
        raise typer.Exit(EXIT_CHECK_FAILED)
