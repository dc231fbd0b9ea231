"""Measures how fast Kafka Connect sinks store a topic, how much they cost, and what is lost."""

import ctypes
import gc
import io
import os
import signal
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from sinkbench.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_UNUSABLE, Interrupted, SettingsError, SinkbenchError

# sinkbench uses no plugins of pydantic, which looks for some in every installed package when a command is imported.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
# Of mallopt(3).
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
LARGE_BYTES, MOST_HEAPS = 256 << 10, 2


def check_place(program: Path, prefix: Path) -> None:
    """Raises SettingsError if the `program` that was called is in another virtual environment than `prefix`."""
    called = program.absolute().parent.parent
    if (called / "pyvenv.cfg").exists() and not called.samefile(prefix):
        raise SettingsError(
            f"{program}: is a program of {prefix}, so this checkout was moved or copied; run its scripts/setup, which"
            " makes .venv anew"
        )


def keep_few_heaps() -> bool:
    """Makes this process use few heaps and return large blocks at once; call it before threads start.

    glibc makes a heap for each of up to eight threads a core and keeps what is freed, which looked like a leak of 60 to
    400 MB an hour. Returns whether the C library supports it."""
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    # musl has the function, too, and says that it did nothing.
    return tell is not None and bool(tell(_ARENA_MAX, MOST_HEAPS)) and bool(tell(_MMAP_THRESHOLD, LARGE_BYTES))


ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = tomllib.loads(
    files("sinkbench.cli").joinpath("commands.toml").read_text(encoding="utf-8")
)
"""The commands by their heading in the help, each with its module and its help in short."""
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
EXAMPLES = (
    ("sinkbench race quick", "a first result in ten minutes"),
    ("sinkbench show --queries", "more of the newest run"),
    ("sinkbench compare latest~1 latest", "the newest two runs"),
)


class Commands(TyperGroup):
    """Imports a command's module when that command is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, whose help begins with that in short; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, text = COMMANDS[cmd_name]
        command = _commands_of(module)[cmd_name]
        if not command.help.startswith(text):
            command.help = f"{text}.\n\n{command.help}"
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer's, which can suggest no command that it has not imported."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from sinkbench.suggest import did_you_mean

            ctx.fail(f"No such command '{args[0]}'{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands by group, without importing them, then examples."""
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])
        with formatter.section("Examples"):
            formatter.write_dl(EXAMPLES, col_max=40)


@cache
def _commands_of(module: str) -> Mapping[str, Any]:
    # What an import makes is no garbage; looking for that, also at the end, took a fifth of the time of `runs`. But of
    # duckdb, if it was not looked at, its library complains at the end.
    gc.disable()
    found = typer.main.get_group(import_module(f"sinkbench.cli.{module}").app).commands
    if "duckdb" not in sys.modules:
        gc.freeze()
    gc.enable()
    return found


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from sinkbench.cli.version import version

        version()
        raise typer.Exit


@app.callback(help=__doc__)
def _group(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """All commands, each from its module."""


def _complain(text: str) -> None:
    from rich.console import Console

    from loadgen.reading import printable
    from sinkbench.secrets import readable

    Console(stderr=True, soft_wrap=True).print(f"sinkbench: {printable(readable(text))}", markup=False, highlight=False)


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
    if password := os.environ.get("PGPASSWORD"):
        from sinkbench.secrets import conceal

        # libpq takes it where a connection string has none.
        conceal(password)
    try:
        check_place(Path(sys.argv[0]), Path(sys.prefix))
        code = app(args=None if arguments is None else list(arguments), prog_name="sinkbench", standalone_mode=False)
    except Interrupted:
        return EXIT_INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_DONE
    except typer.exceptions.TyperException as error:
        text = error.format_message().rstrip(".")
        if text.startswith("Usage:"):
            sys.stderr.write(f"{text}\n")
        else:
            see = " See" if text.endswith("?") else "; see"
            _complain(f"{text}{see} `{getattr(getattr(error, 'ctx', None), 'command_path', 'sinkbench')} -h`")
        return EXIT_UNUSABLE
    except SinkbenchError as error:
        _complain(str(error))
        return EXIT_UNUSABLE
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Python would complain again at its end, when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DONE
    except OSError as error:
        from sinkbench.services.failures import in_one_line

        # A disk, or a permission.
        _complain(f"{error.filename}: {error.strerror}" if error.filename else in_one_line(error))
        return EXIT_UNUSABLE
    return code if isinstance(code, int) else EXIT_DONE


if __name__ == "__main__":
    sys.exit(main())
