"""What disturbed one of two runs more than the other, and can explain a difference: foreign load and stalls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sinkbench.analysis.rates import median_known
from sinkbench.analysis.samples import MUCH_FOREIGN
from sinkbench.analysis.stalls import MUCH_STALLED
from sinkbench.analysis.words import percent
from sinkbench.results import TrialRecord


@dataclass(frozen=True)
class Disturbance:
    """One kind of disturbance in a cell's trials in runs A and B; in `sentence`, "A" and "B" stand for the figures."""

    what: str
    sentence: str
    a: str
    b: str
    more_in_b: bool

    @property
    def in_words(self) -> str:
        """As `what is no part of the stack took 0.0 cores in run A, 0.5 cores in run B`."""
        return f"{self.sentence} {self.a} in run A, {self.b} in run B"


@dataclass(frozen=True)
class _Kind:
    what: str
    sentence: str
    of_trial: Callable[[TrialRecord], float | None]
    much: float
    shown: Callable[[float], str]


def disturbances(a: Sequence[TrialRecord], b: Sequence[TrialRecord], cores: float | None) -> list[Disturbance]:
    """Large differences in disturbance between a cell's valid trials in two runs; `cores` is the machine's number,
    without which foreign load is not compared."""
    kinds = [_Kind("no new record seen, of a drain", "no new record was seen for", _stalled, MUCH_STALLED, percent)]
    if cores is not None:
        much = MUCH_FOREIGN * cores
        kinds = [
            _Kind("foreign load", "what is no part of the stack took", lambda trial: trial.foreign_cores, much, _cores),
            _Kind("stolen from it", "a hypervisor took", lambda trial: trial.stolen_cores, much, _cores),
            *kinds,
        ]
    found = []
    for kind in kinds:
        before, after = (median_known(map(kind.of_trial, trials)) for trials in (a, b))
        if before is not None and after is not None and abs(after - before) > kind.much:
            shown = (kind.shown(before), kind.shown(after))
            found.append(Disturbance(kind.what, kind.sentence, *shown, more_in_b=after > before))
    return found


def _stalled(trial: TrialRecord) -> float | None:
    """The share of a drain that was in stalls; None if stalls were not searched for."""
    if trial.stalled_seconds is None or not trial.window_seconds:
        return None
    return trial.stalled_seconds / trial.window_seconds


def _cores(cores: float) -> str:
    return f"{cores:.1f} cores"
