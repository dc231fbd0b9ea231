"""The command `sinkbench`."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from sinkbench import __version__
from sinkbench.cli import runs as results_command
from sinkbench.cli.place import check_place
from sinkbench.cli.selftest import selftest
from sinkbench.errors import EXIT_CHECK_FAILED, EXIT_DONE, EXIT_INTERRUPTED, EXIT_UNUSABLE, SinkbenchError, StackError
from sinkbench.plan.plan import load_plan
from sinkbench.plan.prices import load_prices
from sinkbench.race.resume import load_unfinished, run_folder
from sinkbench.race.session import Interrupted, offer_by_hand, resume_run, run_plan
from sinkbench.race.starter import StarterNote
from sinkbench.runs.store import RunFolder, read_summary
from sinkbench.secrets import redacted
from sinkbench.services.connect import ConnectCluster, is_even, placement
from sinkbench.services.failures import in_one_line
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.sinks import stamping_sinks
from sinkbench.stack import Stack
from sinkbench.stack.choice import find_stack, open_stack
from sinkbench.stack.local import LocalStack
from sinkbench.tables import cells as table

__all__ = ["Interrupted", "main"]

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, help=__doc__
)
app.add_typer(selftest, name="selftest")
for command in (results_command.compare, results_command.runs, results_command.export, results_command.report):
    app.command()(command)
console = Console(soft_wrap=True)


def say(line: str) -> None:
    console.print(redacted(line), markup=False, highlight=False)


OnStack = Annotated[
    str | None, typer.Option("--stack", help="local, compose, or a stack file (default: SINKBENCH_STACK, else local)")
]
OnRunningStack = Annotated[
    str | None, typer.Option("--stack", help="local, compose, or a stack file (default: the one that runs)")
]
Live = Annotated[bool, typer.Option("--live", help="show the run in a browser on this machine, too")]
LivePort = Annotated[
    int | None, typer.Option(min=0, max=65535, help="its port, 0: any (default: SINKBENCH_LIVE_PORT); means --live")
]


def _stack(choice: str | None) -> Stack:
    settings = load_settings()
    return open_stack(choice or settings.stack, settings)


def _running_stack(choice: str | None) -> Stack:
    return find_stack(load_settings()) if choice is None else _stack(choice)


@app.command()
def up(stack_name: OnStack = None) -> None:
    """Starts the stack and returns when all of it is ready. A second call changes nothing."""
    stack = _stack(stack_name)
    # Whoever asks for it wants it up, whatever race may have started it.
    StarterNote(stack).remove()
    stack.up(say)
    if stack.endpoints.shared:
        say("every endpoint answers; `sinkbench status` asks them again")
        return
    offer_by_hand(stack)
    say("the stack is up; `sinkbench status` shows where, `sinkbench down` stops it")


@app.command()
def down(stack_name: OnStack = None) -> None:
    """Stops the stack, whatever state it is in. Its data stays."""
    stack = _stack(stack_name)
    stack.down()
    StarterNote(stack).remove()
    say("the stack is down")


@app.command()
def status(stack_name: OnRunningStack = None) -> None:
    """Shows every service of the stack and how to reach it; exit code 1 if one does not run."""
    stack = _running_stack(stack_name)
    states, where = stack.states(), stack.addresses()
    for state in states:
        place = where.get(state.name, "")
        say(f"{state.name:<14} {state.state:<8} {state.pid or '':<8} {place} {state.detail}".rstrip())
    if any(state.state != "running" for state in states):
        raise typer.Exit(EXIT_CHECK_FAILED)


@app.command()
def logs(
    service: Annotated[str, typer.Argument(help="kafka, elasticsearch, postgres, pgbouncer, connect-1, ...")],
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="how many of its last lines")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on as the log grows, until Ctrl-C")] = False,
    stack_name: OnRunningStack = None,
) -> None:
    """Shows the end of a service's log."""
    done = subprocess.run(_running_stack(stack_name).log_command(service, lines, follow), check=False)
    raise typer.Exit(EXIT_UNUSABLE if done.returncode else EXIT_DONE)


@app.command()
def scale(
    connector: Annotated[str, typer.Argument(help="name of a connector that runs")],
    multiple: Annotated[int, typer.Argument(min=1, help="tasks for each worker")],
    workers: Annotated[int | None, typer.Option(min=1, help="number of workers (default: the stack's)")] = None,
    connect: Annotated[
        list[str] | None, typer.Option(help="REST address of a worker, may be repeated (default: the stack's)")
    ] = None,
    stack_name: OnRunningStack = None,
) -> None:
    """Gives a running connector MULTIPLE x workers tasks, by Connect's REST alone, and waits until they run.

    Exit code 1 if one of them FAILED, or the workers do not have equally many.
    """
    stack = _running_stack(stack_name)
    count = workers or stack.workers
    tasks = multiple * count
    # Credentials go to the addresses that they were given for, and to no others.
    access = None if connect else stack.endpoints.connect_access
    with ConnectCluster(connect or stack.endpoints.connect.values(), access) as cluster:
        cluster.set_tasks(connector, tasks)
        found = cluster.wait_for_tasks(connector, tasks)
    known = {} if connect else stack.endpoints.worker_ids
    counts = placement(found, known)
    spread = ", ".join(f"{worker} {number}" for worker, number in sorted(counts.items()))
    say(f"{connector}: {found.running} of {tasks} tasks run ({spread})")
    if found.state == "FAILED" or found.failed:
        say(f"{len(found.failed)} of {tasks} tasks FAILED: {found.cause()}")
        raise typer.Exit(EXIT_CHECK_FAILED)
    if not is_even(counts) or len([number for number in counts.values() if number]) < min(count, tasks):
        say("the tasks are spread unevenly over the workers; other connectors' tasks count when Connect places them")
        raise typer.Exit(EXIT_CHECK_FAILED)


@app.command()
def settings() -> None:
    """Prints every setting with its value in force, as a `.env` file has them."""
    sys.stdout.write(load_settings().show() + "\n")


@app.command()
def install() -> None:
    """Fetches the programs that come from Maven, if they are not there; `up` does so by itself."""
    LocalStack(load_settings()).install(say)


@app.command()
def version() -> None:
    """Prints sinkbench's version."""
    sys.stdout.write(f"{__version__}\n")


@app.command()
def race(
    plan: Annotated[Path | None, typer.Argument(help="what to measure (default: SINKBENCH_PLAN)")] = None,
    results: Annotated[Path, typer.Option(help="folder for the results of all runs")] = Path("results"),
    prices: Annotated[Path | None, typer.Option(help=f"{results_command.PRICES}, instead of the plan's")] = None,
    show: Annotated[bool, typer.Option("--show", help="print the plan with all its defaults, and do nothing")] = False,
    live: Live = False,
    live_port: LivePort = None,
    stack_name: OnStack = None,
) -> None:
    """Runs a plan: starts the stack if it is down, takes all trials, prints the table, and stops what it started.

    Exit code 1 if a cell does not pass: a record was lost, doubled or altered, a trial was not audited, a task FAILED,
    a load was not kept up with, no trial is valid.
    """
    wanted = load_plan(plan or CHECKOUT / load_settings().plan, CHECKOUT / "connectors", stamping_sinks())
    if prices is not None:
        wanted = wanted.model_copy(update={"prices": load_prices(prices)})
    if show:
        sys.stdout.write(wanted.show())
        return
    folder, _ = run_plan(_stack(stack_name), wanted, results, console, live_port=_live_port(live, live_port))
    _show_results(folder)


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help=results_command.RUN)],
    stack_name: Annotated[
        str | None, typer.Option("--stack", help="local, compose, or a stack file (default: what the run was on)")
    ] = None,
    live: Live = False,
    live_port: LivePort = None,
) -> None:
    """Takes the trials that an interrupted or killed run has left, into the same run, and prints its table.

    Exit code 1 if a cell does not pass, as of `race`.
    """
    unfinished = load_unfinished(run, CHECKOUT / "connectors")
    folder = run_folder(run) if unfinished is None else unfinished.folder
    if unfinished is None:
        say(f"{folder.path}: nothing to do, the run is complete")
    elif not unfinished.left:
        unfinished.finish()
        say(f"{folder.path}: all trials are there; the run is complete")
    else:
        was = unfinished.summary.environment.get("stack")
        if stack_name is None and was not in ("local", "compose"):
            raise StackError(f"{folder.path}: was measured on stack {was}; name its file: --stack FILE.yaml")
        resume_run(_stack(stack_name or str(was)), unfinished, console, _live_port(live, live_port))
    _show_results(folder)


def _live_port(live: bool, port: int | None) -> int | None:
    """The port of the live page; None without one."""
    return load_settings().port("live_port") if live and port is None else port


def _show_results(folder: RunFolder) -> None:
    """Prints a run's table; exit code 1 if it did not pass."""
    # As stored, without secrets.
    summary = read_summary(folder.path)
    table.show(summary)
    say(f"results: {folder.path}")
    if not summary.passed:
        raise typer.Exit(EXIT_CHECK_FAILED)


def _complain(text: str) -> None:
    Console(stderr=True, soft_wrap=True).print(f"sinkbench: {redacted(text)}", markup=False, highlight=False)


def _interrupt(number: int, frame: object) -> NoReturn:
    # A second signal must not interrupt the cleaning up after the first.
    for each in ENDING_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with `arguments` (default: the process's own); returns the exit code."""
    for each in ENDING_SIGNALS:
        signal.signal(each, _interrupt)
    for out in (sys.stdout, sys.stderr):
        # A name may have letters that the output's encoding lacks.
        if isinstance(out, io.TextIOWrapper):
            out.reconfigure(errors="backslashreplace")
    try:
        check_place(Path(sys.argv[0]), Path(sys.prefix))
        app(args=None if arguments is None else list(arguments), prog_name="sinkbench")
    except Interrupted:
        return EXIT_INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_DONE
    except SinkbenchError as error:
        _complain(str(error))
        return EXIT_UNUSABLE
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Python would complain again at its end, when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DONE
    except OSError as error:
        # A disk, or a permission.
        _complain(f"{error.filename}: {error.strerror}" if error.filename else in_one_line(error))
        return EXIT_UNUSABLE
    return EXIT_DONE


if __name__ == "__main__":
    sys.exit(main())
