"""Ways to show a load's progress, on standard error; standard output is for the summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from loadgen.options import Load
from loadgen.summary import Progress

__all__ = ["Show", "show_bar", "show_json", "show_lines"]

Show = Callable[[Progress], None]
LINE_SECONDS = 5.0


def show_json(progress: Progress) -> None:
    """Writes a JSON object a line, about once a second, for a program."""
    print(progress.model_dump_json(), file=sys.stderr, flush=True)


def show_lines(load: Load) -> Show:
    """Writes a plain line about every 5 s, for a log."""
    last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last + 0.5 >= LINE_SECONDS:
            last = now
            print(_line(load, progress), file=sys.stderr, flush=True)

    return show


@contextmanager
def show_bar(load: Load) -> Iterator[Show]:
    """Draws a bar, for a terminal."""
    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        # Without a total the bar only moves.
        task = bar.add_task(f"loading {load.topic}", total=load.asked)
        yield lambda progress: bar.update(task, completed=progress.acknowledged, description=_line(load, progress))


def _line(load: Load, progress: Progress) -> str:
    failed = f", {progress.failed:,} failed" if progress.failed else ""
    of = "" if load.asked is None else f" of {load.asked:,}"
    return f"{progress.acknowledged:,}{of} records acknowledged{failed}, {progress.records_per_second:,.0f}/s"
