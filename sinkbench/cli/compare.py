"""The command `compare`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sinkbench.cli.options import RESULTS, Baselines, Results, SeveralRuns, commands, put, write
from sinkbench.errors import EXIT_CHECK_FAILED, EXIT_INCONCLUSIVE, ResultsError
from sinkbench.runs.arms import compare_arms
from sinkbench.runs.compare import compare as compare_runs
from sinkbench.runs.differences import why_not_alike
from sinkbench.runs.gate import Gate, gate, percent_of
from sinkbench.runs.reader import BASELINES, StoredRun, find_run, load_run, newest, newest_two
from sinkbench.suggest import did_you_mean
from sinkbench.tables import comparison as table
from sinkbench.tables.github import github, not_compared
from sinkbench.tables.text import markdown

app = commands()
WRITERS = {"text": table.as_text, "markdown": markdown}
GITHUB = "github"


@app.command()
def compare(
    runs: SeveralRuns = None,
    form: Annotated[
        str, typer.Option("--format", help="text, markdown, or github: a comment that a bot updates in place")
    ] = "text",
    to: Annotated[Path | None, typer.Option(help="file to write (default: the output)")] = None,
    fail_if_slower: Annotated[
        str | None, typer.Option(help="exit code 1 if a cell of the second run is slower by more than this, as 5%")
    ] = None,
    fail_if_cpu_higher: Annotated[
        str | None, typer.Option(help="the same, if it takes more CPU time for the same records")
    ] = None,
    baselines: Baselines = None,
    results: Results = RESULTS,
) -> None:
    """Of two runs: what differs, how many times as fast the second is, and whether that is certain; of one, its arms,
    or it and the newest; of none, the arms of the newest, or the newest two of one plan; of more, their rates side by
    side. RUN may be a baseline of `race --save`. Exit code 2 if a baseline is of another machine or plan, 3 if too few
    trials or a disturbance leave the result open."""
    asked = {"--fail-if-slower": fail_if_slower, "--fail-if-cpu-higher": fail_if_cpu_higher}
    slower, more_cpu = (None if text is None else percent_of(text, option) for option, text in asked.items())
    gated = slower is not None or more_cpu is not None
    if form not in (*WRITERS, GITHUB):
        raise ResultsError(f"--format {form}: is not a format of comparisons{did_you_mean(form, [*WRITERS, GITHUB])}")
    paths = [find_run(name, results, baselines or results / BASELINES) for name in runs or []]
    only = next(iter(paths), None) or newest(results)
    comparisons = [] if len(paths) > 1 or only is None else compare_arms(load_run(only))
    if not comparisons:
        if len(paths) < 2:
            paths = [*paths, find_run(None, results)] if paths else [*newest_two(results)]
        kept = [load_run(path) for path in paths]
        if len(kept) > 2:
            if gated or form == GITHUB:
                raise ResultsError(f"{', '.join(asked)}, --format {GITHUB}: compare two runs, not more")
            put(WRITERS[form](table.side_by_side(kept)), to)
            return
        if (refused := _refusal(paths, kept, baselines or results / BASELINES)) is not None:
            other, why = refused
            if form == GITHUB:
                put(not_compared(other, why), to)
            raise ResultsError(why)
        comparisons = [compare_runs(*kept)]
    gates = [gate(each, slower, more_cpu) if gated else Gate([], []) for each in comparisons]
    texts = [
        github(each, found.failures) if form == GITHUB else WRITERS[form](table.compared(each))
        for each, found in zip(comparisons, gates, strict=True)
    ]
    put("\n".join(texts), to)
    if not gated:
        raise typer.Exit(EXIT_INCONCLUSIVE if all(each.undecided for each in comparisons) else 0)
    options = " ".join(f"{option} {text}" for option, text in asked.items() if text is not None)
    for found in gates:
        for line in [*found.remarks, *found.inconclusive, *found.failures]:
            write(f"{options}: {line}\n", err=True)
    if any(found.failures for found in gates):
        raise typer.Exit(EXIT_CHECK_FAILED)
    if any(found.inconclusive for found in gates):
        raise typer.Exit(EXIT_INCONCLUSIVE)


def _refusal(paths: Sequence[Path], kept: Sequence[StoredRun], baselines: Path) -> tuple[StoredRun, str] | None:
    """The run that has no baseline among the two, and why; None if they may be compared."""
    for place, path in enumerate(paths):
        other = kept[1 - place]
        if path.parent == baselines and (why := why_not_alike(kept[place], other)):
            return other, f"baseline {path.name} {why}; save one here, with this plan: sinkbench race PLAN --save NAME"
    return None
