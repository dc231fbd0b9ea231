"""The command `sinkbench`."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

from loadgen.reading import printable
from sinkbench.cli.memory import keep_few_heaps
from sinkbench.cli.place import check_place
from sinkbench.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_UNUSABLE, Interrupted, SinkbenchError
from sinkbench.secrets import conceal, redacted
from sinkbench.services.failures import in_one_line
from sinkbench.suggest import did_you_mean

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The module of each command, in the order of the help.
MODULES = {
    **dict.fromkeys(("up", "down", "status", "logs", "scale", "settings", "install", "version"), "stack"),
    **dict.fromkeys(("race", "resume"), "race"),
    **dict.fromkeys(("compare", "runs", "export", "report"), "runs"),
    "propose": "propose",
    "doctor": "doctor",
    "dlq": "dlq",
    "selftest": "selftest",
}


# Options that were renamed, with their new names.
RENAMED = {"--fail-if-dearer": "--fail-if-cpu-higher"}


class Commands(TyperGroup):
    """Imports a command's module when that command is asked for: what a race needs takes a second to import."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return list(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; None if there is none."""
        return _commands_of(MODULES[cmd_name])[cmd_name] if cmd_name in MODULES else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer's, which can suggest no command that it has not imported."""
        if args and args[0] not in MODULES and not args[0].startswith("-"):
            ctx.fail(f"No such command '{args[0]}'{did_you_mean(args[0], MODULES)}")
        for option in (arg.split("=")[0] for arg in args):
            if option in RENAMED:
                ctx.fail(f"No such option: {option}; it was renamed to {RENAMED[option]}")
        return super().resolve_command(ctx, args)


@cache
def _commands_of(module: str) -> Mapping[str, Any]:
    return typer.main.get_group(import_module(f"sinkbench.cli.{module}").app).commands


app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)


@app.callback(help=__doc__)
def _group() -> None:
    """All commands, each from its module."""


def _complain(text: str) -> None:
    Console(stderr=True, soft_wrap=True).print(f"sinkbench: {printable(redacted(text))}", markup=False, highlight=False)


def _interrupt(number: int, frame: object) -> NoReturn:
    # A second signal must not interrupt the cleaning up after the first.
    for each in ENDING_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with `arguments` (default: the process's own); returns the exit code."""
    keep_few_heaps()
    for each in ENDING_SIGNALS:
        signal.signal(each, _interrupt)
    for out in (sys.stdout, sys.stderr):
        # A name may have letters that the output's encoding lacks.
        if isinstance(out, io.TextIOWrapper):
            out.reconfigure(errors="backslashreplace")
    # libpq takes it where a connection string has none.
    conceal(os.environ.get("PGPASSWORD", ""))
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
