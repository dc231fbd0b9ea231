"""Shows a load's progress on standard error; standard output is for the summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from loadgen.options import Load
from loadgen.summary import Progress

Show = Callable[[Progress], None]
LINE_SECONDS = 5.0


def show_json(progress: Progress) -> None:
    print(progress.model_dump_json(), file=sys.stderr, flush=True)


def show_lines(load: Load) -> Show:
    last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last + 0.5 < LINE_SECONDS:
            return
        last = now
        failed = f", {progress.failed:,} failed" if progress.failed else ""
        of = "" if load.asked is None else f" of {load.asked:,}"
        done = f"{progress.acknowledged:,}{of} records acknowledged{failed}, {progress.records_per_second:,.0f}/s"
        print(done, file=sys.stderr, flush=True)

    return show
