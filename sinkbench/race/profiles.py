"""Profiles the services in one more trial of a cell, which no figure is of."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.results import Profile
from sinkbench.trial.resources import Resources
from sinkbench.trial.trial import run_trial
from sinkbench.trial.workload import Workload

PROFILE_SECONDS, MOST_FRAMES, FEWEST_SAMPLES = 10.0, 5, 10


def profiles_of(own: Resources, workload: Workload, run: Path) -> Iterator[Profile]:
    """Takes a trial, and yields the profile of each service that did something. Files go below the run's folder, into
    profiles/TRIAL. Raises StackError if a service cannot be recorded, or if the trial is not valid."""
    if (profiler := own.cluster.stack.profiler) is None:
        raise StackError("its services are no processes of this machine")
    folder = run / "profiles" / own.names.trial
    own.recording = profiler.recording(folder)
    if reasons := run_trial(own, workload, 0)[0].reasons:
        raise StackError("; ".join(each.text for each in reasons))
    own.observer.phase("drawing flame graphs")
    for service, stacks in profiler.draw(folder, own.cell.key).items():
        if (samples := stacks.total()) >= FEWEST_SAMPLES:
            tops = Counter[str]()
            for stack, count in stacks.items():
                tops[stack.rpartition(";")[2]] += count
            shares = {frame: round(count / samples, 3) for frame, count in tops.most_common(MOST_FRAMES)}
            file = (folder / f"{service}.html").relative_to(run).as_posix()
            yield Profile(cell=own.cell.key, service=service, samples=samples, top=shares, file=file)
