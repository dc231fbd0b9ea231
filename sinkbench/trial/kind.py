"""What sets the kinds of trials apart: drain, sustain and re-scale are classes with the methods of `Kind`."""

from __future__ import annotations

from typing import Protocol, TypedDict, TypeVar

from sinkbench.analysis.samples import Sample
from sinkbench.results import Bottleneck, Lag, LatencyMs, Reads, Recovery, Rescale

__all__ = ["Figures", "Kind", "Observer"]

AnyTrial = TypeVar("AnyTrial", contravariant=True)


class Observer(Protocol):
    """Is told what a trial is doing, for a person who watches."""

    def phase(self, text: str) -> None:
        """The trial goes into another step."""

    def progress(self, done: int, total: int) -> None:
        """Records that are in the topic, or in the sink, so far."""

    def sample(self, sample: Sample) -> None:
        """One reading of everything, while the connector runs. Must return at once."""


class Figures(TypedDict, total=False):
    """What a kind of trial measures: fields of TrialRecord."""

    bottleneck: Bottleneck | None
    compiling_share: float | None
    foreign_cores: float | None
    lag: Lag | None
    monitoring_overhead_cores: float | None
    latency_ms: LatencyMs | None
    notes: list[str]
    offered_records_per_second: float | None
    pilot: bool
    reads: Reads | None
    read_ahead_records: int | None
    records_per_second: float | None
    recovery: Recovery | None
    rescale: Rescale | None
    searchable_ms: LatencyMs | None
    sent_share: float | None
    stolen_cores: float | None
    stalled_seconds: float | None
    stamped_records_per_second: float | None
    steady: bool | None
    warm: bool | None
    warm_up_seconds: float | None
    window_seconds: float | None


class Kind(Protocol[AnyTrial]):
    """What sets one kind of trial apart.

    Its methods are called in the order in which they stand here. All but the last may raise TrialFailed.
    """

    def load(self, trial: AnyTrial) -> None:
        """Prepares the topic."""

    def run(self, trial: AnyTrial) -> None:
        """Calls `Trial.run`, with what happens beside it."""

    def read(self, trial: AnyTrial) -> None:
        """Reads from the sink what only this kind needs, after the audit."""

    def figures(self, trial: AnyTrial) -> Figures:
        """What the trial measured. May add reasons why it must not be used."""
