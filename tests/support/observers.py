"""Observers of a trial that do something while it runs."""

from collections.abc import Callable

from sinkbench.analysis.samples import Sample
from sinkbench.trial.observer import Observer


class At(Observer):
    """Does something when the trial has come to a phase, by the first word of that: `At(auditing=look)`."""

    def __init__(self, **steps: Callable[[], object]) -> None:
        self._steps = steps

    def phase(self, text: str) -> None:
        if step := self._steps.get(text.split()[0].strip(":,")):
            step()


class When(Observer):
    """Does something at the first sample of which something holds."""

    def __init__(self, holds: Callable[[Sample], object], act: Callable[[], object]) -> None:
        self._holds: Callable[[Sample], object] | None = holds
        self._act = act

    def sample(self, sample: Sample) -> None:
        if self._holds is not None and self._holds(sample):
            self._holds = None
            self._act()
