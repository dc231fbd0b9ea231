"""Prints into how long trials the minutes of a comparison are best divided.

.venv/bin/python -m benchmarks.split results/latest --minutes 10

The run is one of a single cell with trials longer than any of interest (`drain.window_seconds: 30`, `trials: 14`). A
shorter trial is the beginning of a long one. What a trial takes beside its drain (the load, the start of the tasks, the
audit, the removal) is taken to stay as it was. It grows with the load, so short trials do a little better than told.
Comparisons of the cell with itself are drawn: a block is two neighbours of the run, in either order, and as many blocks
are drawn as the minutes have room for.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from sinkbench.analysis.intervals import FEWEST_BLOCKS, ratio_by_block
from sinkbench.analysis.rates import HIGH_SHARE, LOW_SHARE, progress
from sinkbench.results import TrialRecord
from sinkbench.runs.store import RunFolder, read_trials

WINDOWS = (3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0)
COMPARISONS = 200
CPU = "cpu_seconds_"
Readings = Mapping[str, Sequence[tuple[float, float]]]
"""By column, its values at their times in seconds."""


def readings(file: Path) -> Readings:
    """What the samples of a trial hold of records stored and of CPU time, but for sinkbench's own."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in csv.DictReader(file.read_text().splitlines()):
        for name, value in row.items():
            if value and (name == "stored" or (name.startswith(CPU) and name != f"{CPU}controller")):
                found.setdefault(name, []).append((float(row["seconds"]), float(value)))
    return found


def begun(seen: Readings, seconds: float) -> tuple[float, float] | None:
    """Records per second, and CPU seconds a million records, of the drain's first `seconds`, as of a trial so long.

    None if the drain was shorter.
    """
    times, counts = progress(*zip(*seen["stored"], strict=True))
    first = times[max(int(np.searchsorted(counts, 0, side="right")) - 1, 0)]
    if times[-1] < first + seconds:
        return None
    records = float(np.interp(first + seconds, times, counts))
    start, end = np.interp([LOW_SHARE * records, HIGH_SHARE * records], counts, times)
    used = 0.0
    for name, values in seen.items():
        if name.startswith(CPU):
            before, after = np.interp([start, end], *zip(*values, strict=True))
            used += after - before
    drained = (HIGH_SHARE - LOW_SHARE) * records
    return drained / (end - start), 1e6 * used / drained


def smallest_difference(values: Sequence[float], blocks: int) -> float:
    """The mean half width of the interval that so many blocks give, as a ratio above 1, less 1.

    Args:
        values: a figure of the run's trials, in their order.
    """
    pairs, draw = list(pairwise(values)), np.random.default_rng(1)
    widths = []
    for _ in range(COMPARISONS):
        picked = [pairs[index][:: draw.choice([-1, 1])] for index in draw.integers(len(pairs), size=blocks)]
        one, other = ({block: pair[side] for block, pair in enumerate(picked)} for side in (0, 1))
        found = ratio_by_block("itself", one, other)
        if found is not None and found.interval is not None:
            widths.append(math.log(found.interval.high / found.interval.low) / 2)
    return math.expm1(statistics.fmean(widths))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run's folder")
    parser.add_argument("--minutes", type=float, default=10.0, help="of trials, for two cells (default 10)")
    arguments = parser.parse_args()
    run: Path = arguments.run
    trials = [trial for trial in read_trials(RunFolder(run).trials_path) if usable(trial)]
    seen = [readings(run / trial.samples) for trial in trials if trial.samples]
    begun_at = [datetime.fromisoformat(trial.started_at).timestamp() for trial in trials]
    drained = [trial.window_seconds or 0.0 for trial in trials]
    beside = statistics.median(
        later - at - took for (at, later), took in zip(pairwise(begun_at), drained, strict=False)
    )
    print(f"{len(trials)} trials of {trials[0].label}; beside its drain a trial takes {beside:.1f} s")
    for seconds in WINDOWS:
        blocks = int(arguments.minutes * 60 / (2 * (seconds + beside)))
        known = [found for each in seen if (found := begun(each, seconds)) is not None]
        if blocks < FEWEST_BLOCKS or len(known) < FEWEST_BLOCKS:
            continue
        rate, cpu = (100 * smallest_difference(values, blocks) for values in zip(*known, strict=True))
        print(f"trials of {seconds:4.0f} s, {blocks:3d} blocks: {rate:5.1f} % by rate, {cpu:5.1f} % by CPU")


def usable(trial: TrialRecord) -> bool:
    return not (trial.pilot or trial.reasons) and trial.warm is not False


if __name__ == "__main__":
    main()
