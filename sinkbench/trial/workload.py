"""What sets drain, sustain, re-scale and fault apart: classes in `sinkbench.trial.workloads` with these methods."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypedDict

from sinkbench.results import Bottleneck, Lag, LatencyMs, Reads, Reason, Recovery, Rescale
from sinkbench.sinks import ArrivalWatch, FullDisk
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import After, Loaded, Measured, Timeline
from sinkbench.trial.workloads.network import Network

__all__ = ["Around", "Figures", "Workload"]


class Figures(TypedDict, total=False):
    """What a workload measures: fields of TrialRecord; `reasons` are added to those of the trial."""

    bottleneck: Bottleneck | None
    lag: Lag | None
    latency_ms: LatencyMs | None
    notes: list[str]
    offered_records_per_second: float | None
    pilot: bool
    reads: Reads | None
    read_ahead_records: int | None
    reasons: list[Reason]
    records_per_second: float | None
    recovery: Recovery | None
    rescale: Rescale | None
    searchable_ms: LatencyMs | None
    sent_share: float | None
    stalled_seconds: float | None
    stamped_records_per_second: float | None
    steady: bool | None
    warm: bool | None
    warm_up_seconds: float | None
    window_seconds: float | None


@dataclass(frozen=True)
class Around:
    """What a workload needs around the trial, from before the load until the audit is over.

    Attributes:
        arriving: tells when records arrived in the sink.
        clock_ms: how far the wall clock was ahead of the monotonic one.
        network: the connector's connections to its sink, which can be broken.
        disk: the disk of the target, which can be filled.
    """

    arriving: ArrivalWatch | None = None
    clock_ms: float = 0.0
    network: Network | None = None
    disk: FullDisk | None = None


class Workload(Protocol):
    """What sets one kind of trial apart.

    Its methods are called in the order in which they stand here, each with what the steps before have found.
    """

    def around(self, own: Resources) -> AbstractContextManager[Around]:
        """What is there from before the load until the audit is over. May raise TrialFailed or ServiceError."""

    def load(self, own: Resources) -> Loaded | None:
        """Prepares the topic; None if its records come later. May raise TrialFailed or ServiceError."""

    def run(self, own: Resources, around: Around, loaded: Loaded | None) -> Timeline:
        """Runs the connector; what ends that early is in the result."""

    def read(self, own: Resources, around: Around, found: Measured) -> After:
        """Reads from the sink what only this workload needs, after the audit. May raise ServiceError."""

    def figures(self, found: Measured, reasons: list[Reason]) -> Figures:
        """What the trial measured, for the reasons so far."""
