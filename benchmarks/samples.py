"""Prints how much disk an hour of samples takes, by pipeline, from the samples of a run: the figures of docs/format.md.

.venv/bin/python -m benchmarks.samples results/latest
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import defaultdict
from pathlib import Path

from sinkbench.runs.store import RunFolder, read_trials

FEWEST_ROWS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run's folder")
    run: Path = parser.parse_args().run
    found: dict[str, list[tuple[int, int, int, float]]] = defaultdict(list)
    for trial in read_trials(RunFolder(run).trials_path):
        content = (run / trial.samples).read_bytes() if trial.samples else b""
        rows = list(csv.DictReader(content.decode().splitlines()))
        if len(rows) >= FEWEST_ROWS:
            found[trial.label].append(
                (len(content), len(gzip.compress(content)), len(rows), float(rows[-1]["seconds"]))
            )
    for label, trials in found.items():
        size, packed, rows, seconds = map(sum, zip(*trials, strict=True))
        print(
            f"{label}: {3.6e-3 * size / seconds:.2f} MB an hour, {rows / seconds:.1f} rows a second of"
            f" {size / rows:.0f} bytes, with gzip {3.6e-3 * packed / seconds:.2f} MB an hour; from {seconds:.0f} s"
        )


if __name__ == "__main__":
    main()
