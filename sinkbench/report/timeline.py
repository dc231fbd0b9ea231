"""Rate and lag over time of each trial, from its samples, as small charts by cell."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from loadgen.reading import read_text
from sinkbench.errors import ResultsError
from sinkbench.report.parts import Chart, Figure, Lines, Part
from sinkbench.report.plots import Drawing, dashes, scale, series, short, ticks
from sinkbench.results import TrialRecord

SHORTEST_STEP_SECONDS = 0.5
# Even hours of samples are smaller.
_MOST_BYTES = 2**28
Series = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Course:
    """A trial in steps of equal length: their ends, rates, and largest lags; NaN is unknown."""

    step_seconds: float
    seconds: Series
    records_per_second: Series
    lag: Series


def read_samples(path: Path) -> Series | str:
    """The samples in a file, or why there are none: a row of seconds, one of records stored, and one of the lag; NaN is
    unknown. Lag is records in the topic and not in the sink, or those not committed if the topic was not read."""
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
    return found.T


def course_of(readings: Series, most: int) -> Course | None:
    """The course of a trial in at most `most` steps of at least half a second; None if the samples show none.
    Records stored are interpolated at the ends of a step."""
    times, stored, _ = readings[:, np.isfinite(readings[1])]
    if len(times) < 2 or times[-1] <= times[0]:
        return None
    whole = float(times[-1] - times[0])
    count = max(1, min(most, int(whole / SHORTEST_STEP_SECONDS)))
    edges = np.linspace(times[0], times[-1], count + 1)
    rates = np.diff(np.interp(edges, times, stored)) / np.diff(edges)
    rates[np.histogram(times, edges)[0] == 0] = math.nan
    largest = np.full(count, math.nan)
    steps = np.clip(np.searchsorted(edges, readings[0], side="right") - 1, 0, count - 1)
    # fmax ignores NaN.
    np.fmax.at(largest, steps, readings[2])
    return Course(whole / count, edges[1:] - times[0], rates, largest)


MOST_CHARTS = 120

MOST_POINTS = 9_000
"""Of all trials together, so that a page opens fast."""
_FEWEST, _MOST = 20, 120
_WIDTH, _PANEL = 208.0, 54.0
_HOW_TO_READ = (
    "Above: records stored a second, with the trial's own rate as a dashed line. Below: the lag, records in the topic "
    "and not yet in the sink, the largest of each step. All charts of a pipeline have the same scales."
)
_OF_FAULTS = "Two lines from top to bottom are the moment of the fault, and when it was undone."


def courses_of(folder: Path, trials: Sequence[TrialRecord]) -> tuple[dict[str, Course], list[str]]:
    """The course of each trial by its id, and why a trial has none; a page has 120 at most."""
    most = max(_FEWEST, min(_MOST, MOST_POINTS // max(1, len(trials))))
    courses, missing = {}, []
    if len(trials) > MOST_CHARTS:
        missing.append(f"charts over time of {len(trials) - MOST_CHARTS} of {len(trials)} trials")
    for trial in trials[:MOST_CHARTS]:
        course = _course(folder, trial.samples, most)
        if isinstance(course, str):
            missing.append(f"trial {trial.trial}: {course}")
        else:
            courses[trial.trial] = course
    return courses, missing


def _course(folder: Path, samples: str | None, most: int) -> Course | str:
    if samples is None:
        return "no samples were kept"
    if Path(samples).is_absolute() or ".." in Path(samples).parts:
        return f"{samples} is not in the run's folder"
    readings = read_samples(folder / samples)
    if isinstance(readings, str):
        return f"{samples} {readings}"
    return course_of(readings, most) or f"{samples} does not say what was stored when"


def timeline(names: Mapping[str, str], trials: Sequence[TrialRecord], courses: Mapping[str, Course]) -> list[Part]:
    """A figure for each cell of `names` with a chart per trial that has a course (by its id), after a legend."""
    figures = []
    for place, (cell, name) in enumerate(names.items()):
        own = [(each, courses[each.trial]) for each in trials if each.cell == cell and each.trial in courses]
        figures += [_figure(f"t{place}", name, own)] if own else []
    said = [_HOW_TO_READ, *([_OF_FAULTS] if any(trial.recovery for trial in trials) else [])]
    return [Lines(said), *figures] if figures else []


def _figure(key: str, name: str, found: Sequence[tuple[TrialRecord, Course]]) -> Figure:
    courses = [course for _, course in found]
    rates, lags = [course.records_per_second for course in courses], [course.lag for course in courses]
    scales = (max(float(course.seconds[-1]) for course in courses), _highest(rates), _highest(lags))
    charts = [
        Chart(
            label=_label(name, trial, course),
            svg=_draw(f"{key}-{at}", trial, course, scales),
            heading=f"{title_of(trial)}: {_rate(trial)}",
        )
        for at, (trial, course) in enumerate(found)
    ]
    steps = sorted({round(course.step_seconds, 2) for course in courses})
    span = f"{steps[0]:g}" if len(steps) == 1 else f"{steps[0]:g} to {steps[-1]:g}"
    caption = f"{name}: records/s and lag over the seconds of each trial, in steps of {span} s."
    return Figure(caption, charts, "Course of a trial", small=True)


def _draw(key: str, trial: TrialRecord, course: Course, scales: tuple[float, float | None, float | None]) -> str:
    """The picture of a trial; `scales` are the longest time, the highest rate and the largest lag of its cell."""
    longest, *highest = scales
    drawing = Drawing(key, _WIDTH, 18.0)
    titles = zip(("records/s", "lag, records"), (course.records_per_second, course.lag), highest, strict=True)
    left, right = 40.0, _WIDTH - 10
    x = scale(0, longest, left, right)
    for place, (title, values, most) in enumerate(titles):
        if most is None:
            continue
        top = drawing.height - 2
        foot = top + _PANEL
        y = scale(0, 1.08 * most, foot, top)
        drawing.text(left, top - 5, title, size=10)
        for tick in ticks(1.08 * most, 2) if most else [0.0]:
            drawing.line([(left, y(tick)), (right, y(tick))], "grid")
            drawing.text(left - 4, y(tick) + 3, short(tick), "end", size=10)
        fault = trial.recovery
        for second in () if fault is None else (fault.began_seconds, fault.ended_seconds):
            if second is not None:
                drawing.line([(x(second), top), (x(second), foot)], series(3), 1.2)
        shown = zip(course.seconds.tolist(), values.tolist(), strict=True)
        drawing.line([(x(at), y(value)) for at, value in shown], series(2 * place), 1.4, dashes(2 * place))
        if not place and trial.records_per_second is not None:
            mean = y(trial.records_per_second)
            drawing.line([(left, mean), (right, mean)], series(1), 1.2, "4 2")
        drawing.height = foot + 18
    for tick in ticks(longest, 3):
        drawing.text(x(tick), drawing.height - 4, f"{tick:g} s", "middle", size=10)
    drawing.height += 2
    return drawing.svg()


def _highest(series: Sequence[Series]) -> float | None:
    return max((value for each in series for value in each.tolist() if math.isfinite(value)), default=None)


def title_of(trial: TrialRecord) -> str:
    return "pilot" if trial.pilot else f"block {trial.block}"


def _rate(trial: TrialRecord) -> str:
    if trial.invalid:
        return "invalid"
    if trial.records_per_second is None:
        return "no rate"
    return f"{trial.records_per_second:,.0f} records/s{', not warm' if trial.warm is False else ''}"


def _label(name: str, trial: TrialRecord, course: Course) -> str:
    said = f"{name}, {title_of(trial)}: records stored a second and lag over {course.seconds[-1]:.0f} seconds"
    largest = _highest([course.lag])
    return f"{said}; {_rate(trial)}" + ("" if largest is None else f", lag at most {largest:,.0f}")
