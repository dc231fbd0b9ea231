"""Times `sinkbench report` of a long simulated run, and prints the times and sizes.

    .venv/bin/python -m benchmarks.report [--seconds SECONDS]

The run has 100 trials, each sampled every 250 ms for SECONDS: 36 (the default) make an hour in all, 3600 an hour each.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.browser import Browser, find
from tests.support.samplerun import keep_run

PIPELINES = [f"postgres/jdbc-{number}" for number in range(5)]
TIMES_OPENED = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=36.0, help="how long each trial was sampled")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        run = keep_run(Path(folder) / "results", pipelines=PIPELINES, seconds=seconds)
        trials = len((run / "trials.jsonl").read_text().splitlines())
        print(f"{trials} trials of {seconds:g} s, {trials * seconds * 4:,.0f} samples")
        started = time.monotonic()
        subprocess.run([sys.executable, "-m", "sinkbench", "report", str(run)], check=True, stdout=subprocess.DEVNULL)
        print(f"written in {time.monotonic() - started:.1f} s")
        report = run / "report.html"
        print(f"{report.stat().st_size / 1e6:.2f} MB")
        assert report.stat().st_size < 3e6
        program = find()
        if program is None:
            print("not opened: there is no Chromium on this machine")
            return
        with Browser(program) as browser:
            opened = sorted(browser.open(report, 1280, dark=False) for _ in range(TIMES_OPENED))
            print(f"opened in {opened[TIMES_OPENED // 2]:.2f} s, median of {TIMES_OPENED}, longest {opened[-1]:.2f} s")
            assert browser.complaints() == []


if __name__ == "__main__":
    main()
