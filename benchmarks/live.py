"""Measures the CPU time of the views of a run, and prints the figures that docs/studies/repeatability.md quotes.

    .venv/bin/python -m benchmarks.live [--seconds SECONDS]

The run is simulated: its events come four times a second, as from probes of seven processes, with a verdict every
twenty seconds and full charts, for SECONDS (60) for each view. Shares are CPU time by elapsed time, of one core, less
that of the same events written as lines of a log.
"""

import argparse
import io
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import islice

from rich.console import Console

from sinkbench.live.page import live_page
from sinkbench.live.state import LiveRun
from sinkbench.live.views import choose_ui
from tests.support.liverun import INTERVAL_SECONDS, began, record, samples

# Until the charts are full, which costs most.
FULL_SECONDS = 60.0
LINE_SAMPLES = 80
MOST_SHARE = 0.02
# Does what a browser does, as seen by the server.
CLIENT = """
import sys, httpx
with httpx.stream("GET", sys.argv[1] + "events", timeout=60) as answer:
    print("connected", flush=True)
    size = sum(len(part) for part in answer.iter_raw())
print(size)
"""


@contextmanager
def log() -> Iterator[Console]:
    yield Console(file=io.StringIO())


@contextmanager
def terminal() -> Iterator[Console]:
    """A terminal whose output a thread discards."""
    ours, theirs = pty.openpty()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            try:
                os.read(ours, 1 << 16)
            except OSError:
                return

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    with os.fdopen(theirs, "w", encoding="utf-8") as file:
        yield Console(file=file, width=80, height=24, force_terminal=True, force_interactive=True)
    over.set()
    thread.join()


def share(
    seconds: float, screen: Callable[[], AbstractContextManager[Console]], *, page: bool = False, clients: int = 0
) -> float:
    """The share of a core that the process takes while it shows a run for `seconds`."""
    live = LiveRun()
    with ExitStack() as opened:
        address = opened.enter_context(live_page(live, 0)) if page else ""
        browsers = [
            subprocess.Popen([sys.executable, "-c", CLIENT, address], stdout=subprocess.PIPE, text=True)
            for _ in range(clients)
        ]
        for browser in browsers:
            assert browser.stdout is not None
            assert browser.stdout.readline() == "connected\n"
        with choose_ui(opened.enter_context(screen()), live) as ui:
            began(ui)
            readings = samples(FULL_SECONDS + seconds)
            for sample in islice(readings, int(FULL_SECONDS / INTERVAL_SECONDS)):
                ui.sample(sample)
            began_at, used = time.monotonic(), time.process_time()
            for number, sample in enumerate(readings, start=1):
                ui.progress(sample.stored or 0, sample.in_topic or 0)
                ui.sample(sample)
                if number % LINE_SAMPLES == 0:
                    ui.ended(record())
                time.sleep(max(began_at + number * INTERVAL_SECONDS - time.monotonic(), 0))
            found = (time.process_time() - used) / (time.monotonic() - began_at)
        live.end("complete")
    for browser in browsers:
        sent = int(browser.communicate(timeout=60)[0])
        print(f"    a browser was sent {sent / seconds / 1e3:.1f} kB a second")
    return found


def event_seconds() -> float:
    """How long a sample blocks the thread that measures."""
    live = LiveRun()
    began(live)
    readings = list(samples(1000))
    started = time.perf_counter()
    for sample in readings:
        live.progress(sample.stored or 0, sample.in_topic or 0)
        live.sample(sample)
    return (time.perf_counter() - started) / len(readings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each view")
    seconds = parser.parse_args().seconds
    print(f"a sample holds the trial up by {1e6 * event_seconds():.0f} microseconds")
    bare = share(seconds, log)
    print(f"the events alone: {100 * bare:.2f} % of a core")
    for name, found in {
        "the page, nobody looks at it": share(seconds, log, page=True),
        "the page with one browser": (watched := share(seconds, log, page=True, clients=1)),
        "the charts of a terminal of 80 by 24": share(seconds, terminal),
    }.items():
        print(f"{name}: {100 * (found - bare):.2f} % of a core more")
    assert watched - bare < MOST_SHARE


if __name__ == "__main__":
    main()
