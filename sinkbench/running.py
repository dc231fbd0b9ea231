"""A run from its beginning to its end: the stack started if it is down, all trials taken, what was started stopped."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console

from sinkbench.bench import Bench
from sinkbench.cells import Cell, expand
from sinkbench.environment import commit, describe, machine
from sinkbench.errors import ResultsError, SinkbenchError, StackError
from sinkbench.kafka import Kafka
from sinkbench.live.state import LiveRun
from sinkbench.live.views import choose_ui
from sinkbench.lock import held_folder, only_race
from sinkbench.plan import Plan
from sinkbench.probes import CLIENT_ERRORS
from sinkbench.race import Kept, Race
from sinkbench.results import RunSummary
from sinkbench.resume import Unfinished
from sinkbench.secrets import redacted
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import SINKS, open_sink
from sinkbench.stack import Stack
from sinkbench.store import RunFolder, check_writable, read_trials

__all__ = ["Interrupted", "offer_by_hand", "resume_run", "run_plan"]

LEAST_FREE_BYTES = 4_000_000_000
BY_HAND_PARTITIONS = 24


class Interrupted(SystemExit):
    """Ctrl-C, a closed terminal, or a polite request to end.

    Not KeyboardInterrupt, which the command line's library takes for itself; and a SystemExit, since for that psycopg
    breaks off a query, so that its connection can be used to clean up.
    """


@dataclass(frozen=True)
class _Begun:
    """Where trials go: into a new run, or into one that has some."""

    folder: RunFolder
    environment: dict[str, JsonValue]
    kept: Kept | None = None


def run_plan(
    stack: Stack,
    plan: Plan,
    results: Path,
    console: Console,
    seconds: float | None = None,
    live_port: int | None = None,
) -> tuple[RunFolder, RunSummary]:
    """Takes all trials of a plan.

    Args:
        stack: is started if it is down, and then stopped in the end.
        plan: what to measure.
        results: folder for the results of all runs.
        console: where lines for the user go.
        seconds: no block begins that would be expected to end later than so long after the first pilot's start.
        live_port: where a browser can follow the run; 0 takes any port that is free, None serves none.

    Returns:
        The run's folder, and its summary, which is in it, too.

    Raises:
        UserError: the plan, the machine, the port or the stack is not usable.
        Interrupted: after what the trial that was going on had created was removed.
    """
    plan = plan.seeded()
    cells = expand(plan, stack.workers)
    check_writable(results)
    with ExitStack() as held:

        def begin(environment: dict[str, JsonValue]) -> _Begun:
            folder = RunFolder.create(results, plan, CHECKOUT / "connectors")
            held.enter_context(held_folder(folder.path))
            return _Begun(folder, environment)

        return _race(stack, plan, cells, console, begin, live_port, seconds)


def resume_run(
    stack: Stack, run: Unfinished, console: Console, live_port: int | None = None
) -> tuple[RunFolder, RunSummary]:
    """Takes the trials that a run has left, into its own folder; the rest as of `run_plan`.

    Raises:
        ResultsError: what the run was measured on changed in what matters, or its race still goes on.
    """
    connectors = CHECKOUT / "connectors"
    # What can be told without a service is, before one is started.
    here = {**machine(), "commit": commit(CHECKOUT)}
    run.check({"stack": stack.name, "workers": stack.workers, **here}, connectors)
    check_writable(run.folder.path)

    def begin(environment: dict[str, JsonValue]) -> _Begun:
        run.check(environment, connectors)
        if read_trials(run.folder.trials_path) != run.trials:
            raise ResultsError(f"{run.folder.path}: has got further trials meanwhile; resume it again")
        kept = Kept(run.trials, run.summary.limits, run.summary.resumed)
        return _Begun(run.folder, run.summary.environment, kept)

    with held_folder(run.folder.path):
        return _race(stack, run.plan, run.cells, console, begin, live_port)


def _race(
    stack: Stack,
    plan: Plan,
    cells: Sequence[Cell],
    console: Console,
    begin: Callable[[dict[str, JsonValue]], _Begun],
    live_port: int | None,
    seconds: float | None = None,
) -> tuple[RunFolder, RunSummary]:
    live = LiveRun()

    def say(line: str) -> None:
        live.say(line)
        console.print(redacted(line), markup=False, highlight=False)

    live.begin("", [cell.key for cell in cells], None)
    with only_race(stack.lock_file, CHECKOUT, plan.name) as tell, _followed(live, live_port, say):
        _check_disk(stack)
        found_running = stack.running()
        # What this command started it stops, also when a service cannot be started or Ctrl-C comes in the middle.
        try:
            say("asking the services" if found_running else "starting the stack")
            live.phase("getting ready")
            stack.up(say)
            with closing(Bench(stack, plan, CHECKOUT)) as bench:
                plugins = bench.preflight(cells)
                for thing in bench.sweep():
                    say(f"removed what an earlier run left behind: {thing}")
                bench.check_alone()
                begun = begin(describe(stack, CHECKOUT, plugins, plan.load))
                tell(begun.folder.run)
                try:
                    with choose_ui(console, live) as ui:
                        race = Race(bench, cells, begun.folder, ui, begun.environment, seconds, begun.kept)
                        summary = race.run()
                except (Interrupted, SinkbenchError, *CLIENT_ERRORS) as ended:
                    how = "interrupted" if isinstance(ended, Interrupted) else "broken off"
                    with suppress(OSError):
                        say(f"{how}; {_how_to_go_on(begun.folder.path, stack, resumable=seconds is None)}")
                    raise
            if found_running:
                offer_by_hand(stack)
        finally:
            if not found_running:
                # A terminal that was closed takes no more lines.
                with suppress(OSError):
                    say("stopping the stack")
                live.phase("stopping the stack")
                stack.down()
    return begun.folder, summary


def _how_to_go_on(folder: Path, stack: Stack, *, resumable: bool) -> str:
    """What a race that was interrupted leaves, and the command that takes it up."""
    line = f"the finished trials are in {folder}"
    if not resumable:
        return line
    file = stack.endpoints.stack_file
    on = [] if file is None else ["--stack", str(file)]
    return f"{line}; the others are taken by: sinkbench {shlex.join(['resume', str(folder), *on])}"


def offer_by_hand(stack: Stack) -> None:
    """Makes the topic, the index and the table that connector files name, so that they can be posted as they stand."""
    if stack.endpoints.shared:
        return
    Kafka(stack.endpoints.kafka, stack.endpoints.kafka_settings).create_topic("tides", BY_HAND_PARTITIONS)
    for name in SINKS:
        sink = open_sink(name, stack.endpoints, CHECKOUT)
        sink.offer_by_hand()
        sink.close()


def _check_disk(stack: Stack) -> None:
    free = stack.free_bytes()
    if free is not None and free < LEAST_FREE_BYTES:
        raise StackError(
            f"{free / 1e9:.1f} GB free where the services keep their data, at least {LEAST_FREE_BYTES / 1e9:.0f} GB "
            "are needed; free some, or (local stack) set SINKBENCH_HOME to a folder on another disk"
        )


@contextmanager
def _followed(live: LiveRun, port: int | None, say: Callable[[str], None]) -> Iterator[None]:
    """Serves the live run at a port if there is one, says where, and tells it in the end how the run has ended."""
    with ExitStack() as opened:
        if port is not None:
            # Here, since most runs need none of it.
            from sinkbench.live.page import LivePage

            say(f"live: {opened.enter_context(LivePage(live, port)).address}")
        try:
            yield
        except SystemExit:
            live.end("interrupted")
            raise
        except BaseException as error:
            if isinstance(error, SinkbenchError):
                live.say(str(error))
            live.end("failed")
            raise
        live.end("complete")
