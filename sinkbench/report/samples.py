"""Rate and lag over a trial, from its samples, in few enough points for a small chart."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from loadgen.reading import read_text
from sinkbench.errors import ResultsError

SHORTEST_STEP_SECONDS = 0.5
# Even hours of samples are smaller.
_MOST_BYTES = 2**28
Series = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SampleColumns:
    """The samples of one trial: seconds, records stored, and the lag; NaN is unknown. Lag is records in the topic
    and not in the sink; if the topic was not read, those not committed by the group."""

    seconds: Series
    stored: Series
    lag: Series


@dataclass(frozen=True)
class Course:
    """A trial in steps of equal length: their ends, rates, and largest lags; NaN is unknown."""

    step_seconds: float
    seconds: Series
    records_per_second: Series
    lag: Series


def read_samples(path: Path) -> SampleColumns | str:
    """The samples in a file, or why there are none."""
    try:
        rows = csv.DictReader(io.StringIO(read_text(path, ResultsError, _MOST_BYTES), newline=""))
        header = rows.fieldnames or ()
        if not {"seconds", "stored"} <= set(header):
            return "is no file of samples, it lacks the columns seconds and stored"
        if len(set(header)) < len(header):
            return "is damaged (a column stands there twice)"
        topic = "in_topic" in header
        columns = ("seconds", "stored", "in_topic" if topic else "uncommitted")
        texts = ([row.get(name, "") for name in columns] for row in rows)
        # A killed run may leave an incomplete row.
        kept = [[text or math.nan for text in row] for row in texts if None not in row]
        found = np.array(kept, dtype=np.float64).reshape(-1, 3)
    except FileNotFoundError:
        return "is missing"
    except ResultsError as unread:
        # The caller names the file.
        return str(unread).removeprefix(str(path)).lstrip(":0123456789 ")
    except (ValueError, csv.Error) as damaged:
        return f"is damaged ({damaged})"
    found[~np.isfinite(found)] = math.nan
    found = found[np.isfinite(found[:, 0])]
    if topic:
        # The two are read one after the other, and records may arrive in between.
        found[:, 2] = np.maximum(found[:, 2] - found[:, 1], 0)
    if len(found) < 2:
        return "has fewer than two samples"
    return SampleColumns(*found.T)


def course_of(readings: SampleColumns, most: int) -> Course | None:
    """The course of a trial in at most `most` steps of at least half a second; None if the samples show none.
    Records stored are interpolated at the ends of a step."""
    known = np.isfinite(readings.stored)
    times, stored = readings.seconds[known], readings.stored[known]
    if len(times) < 2 or times[-1] <= times[0]:
        return None
    whole = float(times[-1] - times[0])
    count = max(1, min(most, int(whole / SHORTEST_STEP_SECONDS)))
    edges = np.linspace(times[0], times[-1], count + 1)
    rates = np.diff(np.interp(edges, times, stored)) / np.diff(edges)
    rates[np.histogram(times, edges)[0] == 0] = math.nan
    return Course(whole / count, edges[1:] - times[0], rates, _largest(readings, edges))


def _largest(readings: SampleColumns, edges: Series) -> Series:
    largest = np.full(len(edges) - 1, math.nan)
    steps = np.clip(np.searchsorted(edges, readings.seconds, side="right") - 1, 0, len(largest) - 1)
    # fmax ignores NaN.
    np.fmax.at(largest, steps, readings.lag)
    return largest
