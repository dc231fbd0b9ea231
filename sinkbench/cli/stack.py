"""The commands for a stack (`up`, `down`, `status`, `check`, `logs`, `scale`), and for this installation."""

import re
import subprocess
import sys
from typing import Annotated

import typer

from sinkbench.cli.options import OnRunningStack, OnStack, commands, running_stack, say, the_stack
from sinkbench.errors import EXIT_CHECK_FAILED, EXIT_DONE, EXIT_UNUSABLE
from sinkbench.race.lock import StarterNote, race_on
from sinkbench.services.causes import failure
from sinkbench.services.connect import ConnectCluster, is_even, placement
from sinkbench.settings import load_settings
from sinkbench.stack import Stack
from sinkbench.stack.local import LocalStack
from sinkbench.stack.logs import logs_of

app = commands()
# Also one that is too common to be redacted elsewhere.
_PASSWORD = re.compile(r"(://[^/@\s]*?:)[^/\s]+@")


@app.command()
def up(stack_name: OnStack = None) -> None:
    """A second call changes nothing, nor one during a race."""
    stack = the_stack(stack_name)
    # Whoever asks for it wants it up, whatever race may have started it.
    StarterNote(stack).remove()
    if (racing := race_on(stack.lock_file)) is not None and stack.start_id() is not None:
        # What is down, frozen or has another role may be so on purpose.
        say(f"a race is running ({racing}): the stack is left as it is, and stays up after it")
        return
    stack.up(say)
    if stack.endpoints.shared:
        say("every endpoint answers; `sinkbench status` asks them again")
        return
    # Imported here: the sinks take as long as all the rest.
    from sinkbench.race.preparation import create_named_targets

    create_named_targets(stack)
    say("the stack is up; `sinkbench status` shows where, `sinkbench down` stops it")


@app.command()
def down(stack_name: OnStack = None) -> None:
    """Stop the stack; its data stays."""
    stack = the_stack(stack_name)
    stack.down()
    StarterNote(stack).remove()
    say("the stack is down")


@app.command()
def status(stack_name: OnRunningStack = None) -> None:
    """Exit code 1 if one does not run."""
    _print_status(running_stack(stack_name))


@app.command()
def check(stack_name: OnRunningStack = None) -> None:
    """Exit code 1 if a service of our own stack does not run, 2 if an endpoint of a stack file is of no use."""
    stack = running_stack(stack_name)
    if stack.endpoints.shared:
        # It asks all endpoints, and has nothing to start.
        stack.up(say)
        say("every endpoint answers")
    else:
        _print_status(stack)


def _print_status(stack: Stack) -> None:
    states, where = stack.services(), stack.endpoints.addresses()
    widest = max([14, *(len(state.name) for state in states)])
    for state in states:
        place = _PASSWORD.sub(r"\1***@", where.get(state.name, ""))
        say(f"{state.name:<{widest}} {state.state:<8} {state.pid or '':<8} {place} {state.detail}".rstrip())
    if stack.layout is not None:
        say(f"topology {stack.layout.name}")
        for line in stack.layout.lines():
            say(f"  {line}")
    if any(state.state != "running" for state in states):
        raise typer.Exit(EXIT_CHECK_FAILED)


@app.command()
def logs(
    service: Annotated[str, typer.Argument(help="kafka, elasticsearch, postgres, pgbouncer, connect-1, ...")],
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="how many of its last lines")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on as the log grows, until Ctrl-C")] = False,
    stack_name: OnRunningStack = None,
) -> None:
    """Print the end of a service's log."""
    done = subprocess.run(running_stack(stack_name).log_command(service, lines, follow), check=False)
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
    """It gets MULTIPLE x workers tasks, by Connect's REST alone, and the command waits until they run.

    Exit code 1 if one of them FAILED, or the workers do not have equally many."""
    stack = running_stack(stack_name)
    count = workers or stack.workers
    tasks = multiple * count
    # Credentials go to the addresses that they were given for, and to no others.
    access = None if connect else stack.endpoints.connect_access
    with ConnectCluster(connect or stack.endpoints.connect.values(), access) as cluster:
        cluster.changes = None if connect else stack.endpoints.connector_changes
        cluster.set_tasks(connector, tasks)
        found = cluster.wait_for_tasks(connector, tasks)
        why = failure(found, cluster.config(connector), *([] if connect else logs_of(stack, connector)))
    counts = placement(found, {} if connect else stack.endpoints.worker_ids)
    spread = ", ".join(f"{worker} {number}" for worker, number in sorted(counts.items()))
    say(f"{connector}: {found.running} of {tasks} tasks run ({spread})")
    if found.state == "FAILED" or found.failed:
        say(f"{len(found.failed)} of {tasks} tasks FAILED: {why}")
        raise typer.Exit(EXIT_CHECK_FAILED)
    if not is_even(counts) or len([number for number in counts.values() if number]) < min(count, tasks):
        say("the tasks are spread unevenly over the workers; other connectors' tasks count when Connect places them")
        raise typer.Exit(EXIT_CHECK_FAILED)


@app.command()
def settings() -> None:
    """The output is a `.env` file."""
    sys.stdout.write(load_settings().show() + "\n")


@app.command()
def install() -> None:
    """`up` does so by itself."""
    LocalStack(load_settings()).install(say)
