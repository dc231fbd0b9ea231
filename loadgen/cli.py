"""The command `loadgen`: fills a Kafka topic with NOAA-style records and reports, as JSON, what became of them.

Exit codes: 0 every record was acknowledged; 1 some were not; 2 unusable options, broker or topic; 130 interrupted."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from loadgen.client import read_client_config
from loadgen.dataset.store import Dataset
from loadgen.engine import run as run_load
from loadgen.errors import ExitCode, Interrupted, OptionsError, UnusableError
from loadgen.options import NOAA, Load, load_from
from loadgen.reading import printable
from loadgen.server import DEFAULT_LISTEN, hosts_of, lacking, make_app, read_users, tls_options
from loadgen.server import serve as serve_http
from loadgen.service import LoadService
from loadgen.summary import Progress

NUMBERS = (int, int | None, float, float | None)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, help=__doc__)


def _with_options_of_load(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command an option for each field of `Load`, before its own ones."""
    options = []
    for name, field in Load.model_fields.items():
        # Command-line options have no unit in their names.
        flag = "--" + name.removesuffix("_seconds").replace("_", "-")
        option = typer.Option(... if field.is_required() else field.default, flag, help=field.description)
        kind = field.annotation if field.annotation in NUMBERS else str
        options.append(Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=kind))
    own = [each for each in signature(command).parameters.values() if each.kind is Parameter.KEYWORD_ONLY]
    command.__signature__ = Signature([*options, *own])  # type: ignore[attr-defined]
    return command


ClientConfig = Annotated[
    Path | None,
    typer.Option(help="A file with further settings of the Kafka client, such as those for SASL and TLS: key=value"),
]


@app.command()
@_with_options_of_load
def run(
    *,
    progress: Annotated[bool, typer.Option(help="Show a line every 5 s")] = True,
    client_config: ClientConfig = None,
    records_client_config: Annotated[
        Path | None, typer.Option(help="The same for the cluster of the topic in --records")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="What is between the columns of your CSV; found out if left out")
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether your CSV begins with names; found out if left out"),
    ] = None,
    **options: Any,
) -> None:
    """Produces records until a count or a duration is reached, then prints the summary."""
    load = load_from(options)
    settings = read_client_config(client_config)
    dialect = delimiter, header
    if load.records == NOAA and dialect != (None, None):
        raise OptionsError("delimiter, header: describe your own CSV; name its file by --records, or leave them out")
    dataset = None if load.records == NOAA else _open_dataset(load, dialect, records_client_config)
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        # A second signal ends the process at once.
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    show = _show_lines(load) if progress else None
    result = run_load(load, on_progress=show, stop=stop, client_settings=settings, dataset=dataset)
    print(result.model_dump_json(indent=2), flush=True)
    if result.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    raise typer.Exit(ExitCode.NOT_ACKNOWLEDGED if result.failed else ExitCode.DONE)


@app.command()
def serve(
    listen: Annotated[str, typer.Option(help="Address to listen on, host:port; port 0 takes any")] = DEFAULT_LISTEN,
    bootstrap: Annotated[str | None, typer.Option(help="Kafka's address for loads that name none")] = None,
    client_config: ClientConfig = None,
    host: Annotated[
        list[str] | None,
        typer.Option(help="A further name or address by which clients call this machine; repeatable; * for any"),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="A file (PEM) with its certificate, and those that sign it: it then speaks TLS")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="A file (PEM) with the certificate's key, which its owner alone may use")
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(
            help="A file with a line user:password for each user, which only its owner may use: requests for more"
            " than /health must come from one of them"
        ),
    ] = None,
    private_network: Annotated[
        bool,
        typer.Option(
            "--private-network",
            help="Only your clients are on its network: it may listen elsewhere than on loopback without TLS and users",
        ),
    ] = False,
) -> None:
    """Takes loads by HTTP, one at a time, until SIGTERM or Ctrl-C."""
    service = LoadService(read_client_config(client_config))
    tls = tls_options(tls_certificate, tls_key)
    known = None if users is None else read_users(users)
    interface = make_app(service, bootstrap, hosts=[*hosts_of(listen), *(host or ())], users=known)
    lacks = lacking(tls=tls is not None, users=known is not None, private_network=private_network)
    raise typer.Exit(serve_http(listen, interface, service, tls=tls, lacks=lacks))


def _open_dataset(load: Load, dialect: tuple[str | None, bool | None], client_config: Path | None) -> Dataset:
    """Reads the user's own records and describes them on standard error."""
    # Imports DuckDB, which is slow.
    from loadgen.dataset.source import open_dataset

    dataset = open_dataset(load.records, load.key, read_client_config(client_config), dialect=dialect)
    print("loadgen:", dataset.facts.in_words, file=sys.stderr)
    if load.asked is None or load.asked > dataset.facts.records:
        print("loadgen: they go round if there are fewer than are asked for", file=sys.stderr)
    return dataset


def _show_lines(load: Load) -> Callable[[Progress], None]:
    """Shows progress on standard error; standard output is for the summary."""
    last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last + 0.5 < 5.0:
            return
        last = now
        failed = f", {progress.failed:,} failed" if progress.failed else ""
        of = "" if load.asked is None else f" of {load.asked:,}"
        done = f"{progress.acknowledged:,}{of} records acknowledged{failed}, {progress.records_per_second:,.0f}/s"
        print(done, file=sys.stderr, flush=True)

    return show


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command with `argv` (default: the process's own) and returns its exit code."""
    try:
        code = app(args=None if argv is None else list(argv), prog_name="loadgen", standalone_mode=False)
    except (UnusableError, typer.exceptions.TyperException) as error:
        why = str(error) if isinstance(error, UnusableError) else f"{error.format_message()} See `loadgen --help`."
        print("loadgen:", printable(" ".join(why.split())), file=sys.stderr)
        return ExitCode.UNUSABLE
    except (Interrupted, KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    return code if isinstance(code, int) else ExitCode.DONE
