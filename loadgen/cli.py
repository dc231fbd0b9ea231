"""The command `loadgen`: fills a Kafka topic with NOAA-style records and says, as JSON, what became of them.

Exit codes: 0 every record was acknowledged; 1 some were not; 2 the options, the broker or the topic cannot be used;
130 interrupted.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from loadgen.clientconfig import read_client_config
from loadgen.engine import run as run_load
from loadgen.errors import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_NOT_ACKNOWLEDGED,
    EXIT_UNUSABLE,
    OptionsError,
    UnusableError,
)
from loadgen.options import Load, load_from
from loadgen.progress import Show, show_bar, show_json, show_lines, show_nothing
from loadgen.serve import DEFAULT_LISTEN
from loadgen.serve import serve as serve_http
from loadgen.server import make_app
from loadgen.service import LoadService
from loadgen.summary import Summary

__all__ = ["main"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, help=__doc__)


def _help(field: str) -> Any:
    return typer.Option(help=Load.model_fields[field].description)


def _default(field: str) -> Any:
    return Load.model_fields[field].default


ClientConfig = Annotated[
    Path | None,
    typer.Option(help="A file with further settings of the Kafka client, such as those for SASL and TLS: key=value"),
]


@app.command()
def run(
    bootstrap: Annotated[str, _help("bootstrap")],
    topic: Annotated[str, _help("topic")],
    count: Annotated[int | None, _help("count")] = None,
    duration: Annotated[float | None, _help("duration_seconds")] = None,
    rate: Annotated[float | None, _help("rate")] = None,
    keys: Annotated[int, _help("keys")] = _default("keys"),
    record_bytes: Annotated[int, _help("record_bytes")] = _default("record_bytes"),
    acks: Annotated[str, _help("acks")] = _default("acks"),
    compression: Annotated[str, _help("compression")] = _default("compression"),
    linger_ms: Annotated[float, _help("linger_ms")] = _default("linger_ms"),
    batch_bytes: Annotated[int, _help("batch_bytes")] = _default("batch_bytes"),
    partitions: Annotated[int | None, _help("partitions")] = None,
    replication: Annotated[int | None, _help("replication")] = None,
    run: Annotated[str, _help("run")] = _default("run"),
    first_seq: Annotated[int, _help("first_seq")] = _default("first_seq"),
    first_t: Annotated[str, _help("first_t")] = _default("first_t"),
    delivery_timeout: Annotated[float, _help("delivery_timeout_seconds")] = _default("delivery_timeout_seconds"),
    summary: Annotated[
        Path | None, typer.Option(help="A file to write the summary to, besides standard output")
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show a bar on a terminal, else a line every 5 s")] = True,
    progress_json: Annotated[bool, typer.Option(help="Show one JSON object a second instead")] = False,
    client_config: ClientConfig = None,
) -> None:
    """Produces records until a count or a duration is reached, then prints the summary."""
    load = load_from(
        {
            "bootstrap": bootstrap, "topic": topic, "count": count, "duration_seconds": duration, "rate": rate,
            "keys": keys, "record_bytes": record_bytes, "acks": acks, "compression": compression,
            "linger_ms": linger_ms, "batch_bytes": batch_bytes, "partitions": partitions, "replication": replication,
            "run": run, "first_seq": first_seq, "first_t": first_t, "delivery_timeout_seconds": delivery_timeout,
        }
    )  # fmt: skip
    settings = _read_settings(client_config)
    _check_writable(summary)
    with _stop_on_signal() as stop, _choose_show(progress, progress_json)(load) as show:
        result = run_load(load, on_progress=show, stop=stop, client_settings=settings)
    text = result.model_dump_json(indent=2)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    if summary is not None:
        summary.write_text(text + "\n", encoding="utf-8")
    raise typer.Exit(_exit_code(result))


@app.command()
def serve(
    listen: Annotated[str, typer.Option(help="Address to listen on, host:port; port 0 takes any")] = DEFAULT_LISTEN,
    bootstrap: Annotated[str | None, typer.Option(help="Kafka's address for loads that name none")] = None,
    client_config: ClientConfig = None,
    exit_on_eof: Annotated[bool, typer.Option("--exit-on-eof", help="End when standard input closes, too")] = False,
) -> None:
    """Takes loads by HTTP, one at a time, until it is told to end."""
    service = LoadService(_read_settings(client_config))
    raise typer.Exit(serve_http(listen, make_app(service, bootstrap), service, exit_on_eof=exit_on_eof))


def _read_settings(path: Path | None) -> dict[str, str]:
    return {} if path is None else read_client_config(path)


def _choose_show(progress: bool, progress_json: bool) -> Callable[[Load], AbstractContextManager[Show | None]]:
    if progress_json:
        return show_json
    if not progress:
        return show_nothing
    return show_bar if sys.stderr.isatty() else show_lines


def _exit_code(summary: Summary) -> int:
    if summary.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_NOT_ACKNOWLEDGED if summary.failed else EXIT_DONE


def _check_writable(path: Path | None) -> None:
    """Before the load rather than after it."""
    if path is None:
        return
    try:
        path.touch()
    except OSError as error:
        raise OptionsError(f"summary: {path} cannot be written ({error.strerror}); give another file") from None


@contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set. A second Ctrl-C ends the process at once."""
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command with `argv` (default: the process's own) and returns its exit code."""
    try:
        code = app(args=None if argv is None else list(argv), prog_name="loadgen", standalone_mode=False)
    except UnusableError as error:
        return _refuse(str(error))
    except typer.exceptions.TyperException as error:
        return _refuse(f"{error.format_message()} See `loadgen --help`.")
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    return code if isinstance(code, int) else EXIT_DONE


def _refuse(why: str) -> int:
    line = " ".join(why.split())
    sys.stderr.write(f"loadgen: {line}\n")
    return EXIT_UNUSABLE


if __name__ == "__main__":
    sys.exit(main())
