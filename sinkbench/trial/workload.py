"""The interface of a workload; `sinkbench.trial.workloads` has the implementations."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypedDict

from sinkbench.results import Bottleneck, Lag, LatencyMs, Reads, Reason, Recovery, Rescale
from sinkbench.sinks import ArrivalWatch, FullDisk
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import After, Loaded, Measured, Timeline
from sinkbench.trial.workloads.network import Network


class Figures(TypedDict, total=False):
    """What a workload measures: fields of TrialRecord. `reasons` are added to the trial's."""

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
    """What a workload needs from before the load until after the audit.

    `clock_ms` is the wall clock minus the monotonic clock; faults use `network` and `disk`.
    """

    arriving: ArrivalWatch | None = None
    clock_ms: float = 0.0
    network: Network | None = None
    disk: FullDisk | None = None


class Workload(Protocol):
    """One kind of trial. Its methods are called in this order, each with the results of the steps before."""

    def around(self, own: Resources) -> AbstractContextManager[Around]:
        """Returns the context from before the load until after the audit. May raise TrialFailed or ServiceError."""

    def load(self, own: Resources) -> Loaded | None:
        """Loads the topic; None if records come later. May raise TrialFailed or ServiceError."""

    def run(self, own: Resources, around: Around, loaded: Loaded | None) -> Timeline:
        """Runs the connector. An error that ends the run early is in the result."""

    def read(self, own: Resources, around: Around, found: Measured) -> After:
        """Reads after the audit what only this workload needs. May raise ServiceError."""

    def figures(self, found: Measured, reasons: list[Reason]) -> Figures:
        """Returns the figures of the trial, given the reasons so far."""
