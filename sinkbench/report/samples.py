"""What a trial's samples say about its course: the rate and the lag, in as few points as a small chart can show."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["Course", "Readings", "course_of", "read_samples"]

SHORTEST_STEP_SECONDS = 0.5
Series = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Readings:
    """The samples of one trial: when, in seconds, how many records were stored, and the lag; nan is not known.

    The lag is what was in the topic and not in the sink, or, of a topic that was not read, not committed by the group.
    """

    seconds: Series
    stored: Series
    lag: Series


@dataclass(frozen=True)
class Course:
    """A trial in steps of the same length.

    Attributes:
        seconds: the ends of the steps, from the first sample on.
        records_per_second: what was stored in each step, by its length; nan where samples lack.
        lag: the largest in each step; nan where there is none.
    """

    step_seconds: float
    seconds: Series
    records_per_second: Series
    lag: Series


def read_samples(path: Path) -> Readings | str:
    """The samples in a file, or why there are none."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            header = next(rows, [])
            topic = "in_topic" in header
            columns = ("seconds", "stored", "in_topic" if topic else "lag")
            places = [header.index(name) if name in header else None for name in columns]
            if places[0] is None or places[1] is None:
                return "is no file of samples, it lacks the columns seconds and stored"
            # Of a million rows each look-up counts; a row that is too short is of a run that was killed.
            first, second, third = places[0], places[1], places[2]
            least = max(place for place in places if place is not None)
            kept = [
                (row[first] or math.nan, row[second] or math.nan, math.nan if third is None else row[third] or math.nan)
                for row in rows
                if len(row) > least
            ]
        found = np.array(kept, dtype=np.float64).reshape(-1, 3)
    except FileNotFoundError:
        return "is missing"
    except OSError as failed:
        return f"cannot be read ({failed.strerror})"
    except (ValueError, csv.Error) as damaged:
        return f"is damaged ({damaged})"
    found = found[np.isfinite(found[:, 0])]
    if topic:
        # Two readings, one just after the other: in between a record may have come.
        found[:, 2] = np.maximum(found[:, 2] - found[:, 1], 0)
    if len(found) < 2:
        return "has fewer than two samples"
    return Readings(*found.T)


def course_of(readings: Readings, most: int) -> Course | None:
    """The course of a trial in at most `most` steps of at least half a second; None if nothing can be told of it.

    What was stored at a step's ends is interpolated between the samples around them, as for every rate of sinkbench. A
    step without any sample has no rate.
    """
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


def _largest(readings: Readings, edges: Series) -> Series:
    largest = np.full(len(edges) - 1, math.nan)
    steps = np.clip(np.searchsorted(edges, readings.seconds, side="right") - 1, 0, len(largest) - 1)
    # fmax passes over what is not known.
    np.fmax.at(largest, steps, readings.lag)
    return largest
