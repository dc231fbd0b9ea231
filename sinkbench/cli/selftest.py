"""The commands `sinkbench selftest ...`: the benchmark measures itself."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from sinkbench.cli.options import RESULTS, OnStack, Results, commands, console, the_stack, write
from sinkbench.errors import EXIT_CHECK_FAILED
from sinkbench.metrics.taken import valid_by_block
from sinkbench.plan.plan import Plan
from sinkbench.race.session import run_plan
from sinkbench.results import Noise, Overhead, TrialRecord
from sinkbench.runs.reader import load_run
from sinkbench.runs.store import read_trials
from sinkbench.sinks import stamping_sinks
from sinkbench.summary import selftest
from sinkbench.summary.cells import cpu_by_block
from sinkbench.tables.screen import screen

app = commands()
group = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Measure the noise and the overhead of measuring."
)
app.add_typer(group, name="selftest")

PIPELINE = "postgres/jdbc"
Minutes = Annotated[float, typer.Option(min=1, max=1440, help="how long blocks are taken")]
Outcome = TypeVar("Outcome", bound=Noise | Overhead)
TOO_FEW = "Fewer than 5 blocks in which both are valid: too few to compare; give it more --minutes."


@group.command()
def noise(
    pipeline: Annotated[str, typer.Argument(help="the pipeline that is raced against itself")] = PIPELINE,
    minutes: Minutes = 10,
    results: Results = RESULTS,
    stack_name: OnStack = None,
) -> None:
    """Races a pipeline against itself: how often a difference is claimed, and the smallest that would be found.

    Exit code 1 if a cell does not pass, or the trials are too few to tell."""

    def outcome_of(trials: Sequence[TrialRecord]) -> Noise | None:
        taken = [[trial for trial in trials if trial.label == label] for label in selftest.LABELS]
        by_rate, by_cpu = (selftest.noise_of(*map(measured, taken)) for measured in (valid_by_block, cpu_by_block))
        return None if by_rate is None else by_rate.model_copy(update={"by_cpu": by_cpu})

    _race(pipeline, selftest.noise_plan, minutes, results, stack_name, outcome_of, selftest.noise_lines)


@group.command()
def overhead(
    pipeline: Annotated[str, typer.Argument(help="the pipeline that is raced with and without probes")] = PIPELINE,
    minutes: Minutes = 10,
    results: Results = RESULTS,
    stack_name: OnStack = None,
) -> None:
    """Races a pipeline with all probes against the same with none: the monitoring overhead.

    Exit code 1 if a cell does not pass, or the trials are too few to tell."""
    plan = partial(selftest.overhead_plan, stamping=stamping_sinks())
    _race(pipeline, plan, minutes, results, stack_name, selftest.overhead_of, selftest.overhead_lines)


def _race(
    pipeline: str,
    plan_of: Callable[[str, float], Plan],
    minutes: float,
    results: Path,
    stack_name: str | None,
    outcome_of: Callable[[Sequence[TrialRecord]], Outcome | None],
    lines_of: Callable[[Outcome, str], list[str]],
) -> None:
    """Races the plan of a selftest, adds what its trials show to the summary, and prints both."""
    stack = the_stack(stack_name)
    plan = plan_of(pipeline, minutes)
    folder, summary = run_plan(stack, plan, results, console, 60 * minutes)
    if (outcome := outcome_of(read_trials(folder.trials_path))) is not None:
        # The field of the summary has the plan's name.
        folder.write_summary(summary.model_copy(update={plan.name: outcome}))
    write(screen(load_run(folder.path)))
    lines = [TOO_FEW] if outcome is None else lines_of(outcome, pipeline)
    for line in [*lines, f"results: {folder.path}"]:
        console.print(line, markup=False, highlight=False)
    if outcome is None or not summary.passed:
        raise typer.Exit(EXIT_CHECK_FAILED)
