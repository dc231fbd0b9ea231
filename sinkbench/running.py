"""A run from its beginning to its end: the stack started if it is down, all trials taken, what was started stopped."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from rich.console import Console

from sinkbench.bench import Bench
from sinkbench.cells import expand
from sinkbench.environment import describe
from sinkbench.errors import SinkbenchError, StackError
from sinkbench.kafka import Kafka
from sinkbench.live.state import LiveRun
from sinkbench.live.views import choose_ui
from sinkbench.plan import Plan
from sinkbench.race import Race
from sinkbench.results import RunSummary
from sinkbench.secrets import redacted
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import SINKS, open_sink
from sinkbench.stack import Stack
from sinkbench.store import RunFolder, check_writable

__all__ = ["Interrupted", "offer_by_hand", "run_plan"]

LEAST_FREE_BYTES = 4_000_000_000
BY_HAND_PARTITIONS = 24


class Interrupted(SystemExit):
    """Ctrl-C, a closed terminal, or a polite request to end.

    Not KeyboardInterrupt, which the command line's library takes for itself; and a SystemExit, since for that psycopg
    breaks off a query, so that its connection can be used to clean up.
    """


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

    live = LiveRun()

    def say(line: str) -> None:
        live.say(line)
        console.print(redacted(line), markup=False, highlight=False)

    cells = expand(plan, stack.workers)
    live.begin("", [cell.key for cell in cells], None)
    check_writable(results)
    with _only_one(stack), _followed(live, live_port, say):
        _check_disk(stack)
        found_running = stack.running()
        # What this command started it stops, also when a service cannot be started or Ctrl-C comes in the middle.
        try:
            say("asking the services" if found_running else "starting the stack")
            live.phase("getting ready")
            stack.up(say)
            plan = plan.seeded()
            with closing(Bench(stack, plan, CHECKOUT)) as bench:
                plugins = bench.preflight(cells)
                for thing in bench.sweep():
                    say(f"removed what an earlier run left behind: {thing}")
                bench.check_alone()
                environment = describe(stack, CHECKOUT, plugins, plan.load)
                folder = RunFolder.create(results, plan, CHECKOUT / "connectors")
                try:
                    with choose_ui(console, live) as ui:
                        summary = Race(bench, cells, folder, ui, environment, seconds).run()
                except Interrupted:
                    say(f"interrupted; the finished trials are in {folder.path}")
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
    return folder, summary


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


@contextmanager
def _only_one(stack: Stack) -> Iterator[None]:
    """One race on a stack at a time; the kernel drops the lock with its holder, however that ends."""
    stack.lock_file.parent.mkdir(parents=True, exist_ok=True)
    with stack.lock_file.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise StackError(
                f"another race is running on this stack (pid {file.read().strip() or 'unknown'}); wait for it"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
