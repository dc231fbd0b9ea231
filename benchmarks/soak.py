"""Races for a long time with a browser at the live page, and prints how the controller's memory, open files and threads
change, as slopes.

    .venv/bin/python -m benchmarks.soak [--minutes MINUTES] [--stack STACK]
    .venv/bin/python -m benchmarks.soak --plan plans/faults.yaml [--stack STACK]

The controller is looked at every second for MINUTES (30), or, of a PLAN, until its race ends; that run is kept in
results/. The first tenth, in which it imports and connects, is left out. What a minute's readings have in common is
their median, since readings that follow each other are alike. The slope through these medians is Theil's and Sen's,
with its 95 % interval. Exit code 1: something grows, that is, the whole interval is above zero, and what it adds in
an hour is more than a hundredth of what there was.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import psutil
from scipy import stats

PLAN = """
pipelines: [postgres/jdbc, elasticsearch/camel-bulk]
trials: 10000
drain: {compiling_percent: 100, window_seconds: 3, pilot_seconds: 1, warm_up_seconds: 3}
"""
LOOK_SECONDS, BLOCK_SECONDS = 1.0, 60.0
LEFT_OUT = 0.1
GROWTH = 0.01
LIVE = "live: "


@dataclass(frozen=True)
class Slope:
    """How much a value changes in an hour, between which bounds (95 %), and what it is in the middle."""

    per_hour: float
    low: float
    high: float
    median: float

    @property
    def grows(self) -> bool:
        """Whether it surely does, and by what matters."""
        return self.low > 0 and self.per_hour > GROWTH * self.median


def slope_of(seconds: Sequence[float], values: Sequence[float], block_seconds: float = BLOCK_SECONDS) -> Slope:
    """The slope through the medians of blocks of so many seconds; ValueError of fewer than three blocks."""
    blocks = np.floor(np.asarray(seconds) / block_seconds)
    middles = [(block + 0.5) * block_seconds / 3600 for block in np.unique(blocks)]
    medians = [float(np.median(np.asarray(values)[blocks == block])) for block in np.unique(blocks)]
    if len(medians) < 3:
        raise ValueError(f"{len(medians)} blocks of {block_seconds:g} s give no slope; soak for longer")
    found = stats.theilslopes(medians, middles)
    return Slope(float(found.slope), float(found.low_slope), float(found.high_slope), float(np.median(medians)))


def reading(process: psutil.Process) -> dict[str, float]:
    """What the controller holds now, without what it has started."""
    with process.oneshot():
        return {
            "memory (MB)": process.memory_full_info().uss / 1e6,
            "open files": float(process.num_fds()),
            "threads": float(process.num_threads()),
        }


def browse(address: str) -> None:
    """Reads the live page's events until they end, as a browser does."""
    with httpx.stream("GET", f"{address}events", timeout=None, trust_env=False) as answer:  # noqa: S113  it lasts
        for _ in answer.iter_raw():
            pass


def soak(minutes: float, stack: str, plan: Path | None = None) -> tuple[list[float], list[dict[str, float]], str]:
    """The readings with their seconds since the start, and what the race printed."""
    with tempfile.TemporaryDirectory() as folder:
        if plan is None:
            (Path(folder) / "soak.yaml").write_text(PLAN)
            raced = ["soak.yaml"]
        else:
            raced = [str(plan.resolve()), "--results", str(Path("results").resolve())]
        command = [sys.executable, "-m", "sinkbench", "race", *raced, "--live-port", "0", "--stack", stack]
        log = Path(folder) / "log"
        with log.open("w") as out, subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT) as race:
            process, times, readings = psutil.Process(race.pid), [], []
            browser: threading.Thread | None = None
            began = time.monotonic()
            while ((now := time.monotonic() - began) < 60 * minutes or plan is not None) and race.poll() is None:
                try:
                    readings.append(reading(process))
                except psutil.Error:
                    # It has ended just now.
                    break
                times.append(now)
                at = next((line for line in log.read_text().splitlines() if line.startswith(LIVE)), None)
                if browser is None and at is not None:
                    browser = threading.Thread(target=browse, args=(at.removeprefix(LIVE).strip(),), daemon=True)
                    browser.start()
                time.sleep(LOOK_SECONDS)
            if race.poll() is None:
                race.send_signal(signal.SIGINT)
            race.wait(120)
        return times, readings, log.read_text()


def slopes_of(times: Sequence[float], readings: Sequence[Mapping[str, float]]) -> dict[str, Slope]:
    """The slope of each value, without the first tenth."""
    kept = [place for place, seconds in enumerate(times) if seconds >= LEFT_OUT * times[-1]]
    return {
        name: slope_of([times[place] for place in kept], [readings[place][name] for place in kept])
        for name in readings[0]
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--stack", default="local", help="local, compose, or a stack file")
    parser.add_argument("--plan", type=Path, help="race this to its end, instead of MINUTES of two pipelines")
    asked = parser.parse_args()
    times, readings, said = soak(asked.minutes, asked.stack, asked.plan)
    if asked.plan is not None:
        print(said)
    elif not times or times[-1] < 54 * asked.minutes:
        print(said)
        raise SystemExit("the race ended before its time")
    print(f"{times[-1] / 60:.1f} minutes, {said.count('records/s')} lines with a rate")
    slopes = slopes_of(times, readings)
    for name, slope in slopes.items():
        print(
            f"{name}: {slope.median:.1f}; an hour adds {slope.per_hour:+.2f} ({slope.low:+.2f} to {slope.high:+.2f})"
            + (", it grows" if slope.grows else "")
        )
    return int(any(slope.grows for slope in slopes.values()))


if __name__ == "__main__":
    sys.exit(main())
