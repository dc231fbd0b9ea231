"""Rate and lag over time of each trial, as small charts by cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sinkbench.metrics.format import whole
from sinkbench.report.draw import Look, panel, small, svg_of
from sinkbench.report.parts import Chart, Figure, Lines, Part, Table
from sinkbench.report.samples import Course, Series, course_of, read_samples
from sinkbench.results import TrialRecord

MOST_CHARTS = 120

MOST_POINTS = 9_000
"""Of all trials together, so that a page opens fast."""
_FEWEST, _MOST = 20, 120
_WIDTH, _HEIGHT = 208.0, 170.0
_HOW_TO_READ = (
    "Above: records stored a second, with the trial's own rate as a dashed line. Below: the lag, records in the topic "
    "and not yet in the sink, the largest of each step. All charts of a pipeline have the same scales."
)
_OF_FAULTS = "Two lines from top to bottom are the moment of the fault, and when it was undone."


def drawn(trials: Sequence[TrialRecord]) -> tuple[list[TrialRecord], list[str]]:
    """The trials that get a chart, at most 120, the first ones of each cell, and a line about the others."""
    if len(trials) <= MOST_CHARTS:
        return list(trials), []
    each = max(1, MOST_CHARTS // len({trial.cell for trial in trials}))
    counts: Counter[str] = Counter()
    kept: list[TrialRecord] = []
    for trial in trials:
        counts[trial.cell] += 1
        if counts[trial.cell] <= each and len(kept) < MOST_CHARTS:
            kept.append(trial)
    return kept, [
        f"charts over time of {len(trials) - len(kept)} of {len(trials)} trials: a page has {MOST_CHARTS} at most"
    ]


def courses_of(folder: Path, trials: Sequence[TrialRecord]) -> tuple[dict[str, Course], list[str]]:
    """The course of each trial by its id, and why a trial has none."""
    most = max(_FEWEST, min(_MOST, MOST_POINTS // max(1, len(trials))))
    courses, missing = {}, []
    for trial in trials:
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
        if shown := [trial for trial in trials if trial.cell == cell and trial.trial in courses]:
            figures.append(_figure(f"t{place}", name, shown, courses))
    said = [_HOW_TO_READ, *([_OF_FAULTS] if any(trial.recovery for trial in trials) else [])]
    return [Lines(said), *figures] if figures else []


def _figure(key: str, name: str, trials: Sequence[TrialRecord], courses: Mapping[str, Course]) -> Figure:
    found = [courses[trial.trial] for trial in trials]
    highest = _highest([course.records_per_second for course in found])
    largest = _highest([course.lag for course in found])
    longest = max(float(course.seconds[-1]) for course in found)
    pictures = _draw(key, trials, found, (longest, highest, largest))
    charts = [
        Chart(label=_label(name, trial, course), svg=svg, heading=f"{title_of(trial)}: {_rate(trial)}")
        for trial, course, svg in zip(trials, found, pictures, strict=True)
    ]
    steps = sorted({round(course.step_seconds, 2) for course in found})
    span = f"{steps[0]:g}" if len(steps) == 1 else f"{steps[0]:g} to {steps[-1]:g}"
    rows = [
        (title_of(trial), f"{second:.1f}", whole(rate), whole(lag))
        for trial, course in zip(trials, found, strict=True)
        for second, rate, lag in zip(course.seconds, course.records_per_second, course.lag, strict=True)
    ]
    headers = ("trial", "second", "records/s", "lag")
    table = Table(headers, rows, f"{name}: the courses of its trials", numbers=(1, 2, 3))
    caption = f"{name}: records/s and lag over the seconds of each trial, in steps of {span} s."
    return Figure(caption, charts, "Course of a trial", table, small=True)


def _draw(
    key: str, trials: Sequence[TrialRecord], courses: Sequence[Course], scales: tuple[float, float | None, float | None]
) -> Iterator[str]:
    """A picture per trial; `scales` are the longest time, the highest rate and the largest lag of all."""
    longest, highest, largest = scales
    rows = 1 if largest is None else 2
    # Reusing the axes and changing only the lines is twice as fast.
    with panel(_WIDTH, _HEIGHT if rows == 2 else _HEIGHT / 2 + 10, rows) as (figure, axes):
        (rate,) = axes[0].plot([], [], color=Look(0).colour, linewidth=1.4)
        mean = axes[0].axhline(0, color=Look(1).colour, linewidth=1.2, linestyle=(0, (4, 2)))
        (lag,) = axes[-1].plot([], [], color=Look(2).colour, linewidth=1.4, linestyle=Look(2).dashes)
        for each, title, most in zip(axes, ("records/s", "lag, records"), (highest, largest), strict=False):
            # With a fixed position matplotlib does not search for one at each drawing.
            each.set_title(title, loc="left", fontsize=10.0, y=1.0, pad=3.0)
            each.set_ylim(0, 1.08 * most if most else 1)
            each.set_xlim(0, longest)
            small(each)
        axes[0].tick_params(labelbottom=rows == 1)
        marks = [each.axvline(0, color=Look(3).colour, linewidth=1.2) for each in axes for _ in range(2)]
        for place, (trial, course) in enumerate(zip(trials, courses, strict=True)):
            for mark, second in zip(marks, _moments(trial) * len(axes), strict=True):
                mark.set_visible(second is not None)
                mark.set_xdata([second or 0.0] * 2)
            rate.set_data(course.seconds, course.records_per_second)
            mean.set_visible(trial.records_per_second is not None)
            mean.set_ydata([trial.records_per_second or 0.0] * 2)
            if rows == 2:
                lag.set_data(course.seconds, course.lag)
            yield svg_of(figure, f"{key}-{place}")


def _moments(trial: TrialRecord) -> list[float | None]:
    """When a trial's fault began and was undone; None without a fault."""
    found = trial.recovery
    return [None, None] if found is None else [found.began_seconds, found.ended_seconds]


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
