"""The interface of a workload; `sinkbench.trial.workloads` has the implementations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from sinkbench.results import Reason
from sinkbench.sinks import ArrivalWatch, FullDisk
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import After, Loaded, Measured, Timeline
from sinkbench.trial.workloads.around import Network

Figures = Mapping[str, Any]
"""What a workload measures: fields of TrialRecord by name. Its `reasons` and `notes` are added to the trial's."""


@dataclass(frozen=True)
class Around:
    """What a workload needs from before the load until after the audit.

    `clock_ms` is the wall clock minus the monotonic clock; faults use `network` and `disk`.
    """

    arriving: ArrivalWatch | None = None
    clock_ms: float = 0.0
    network: Network | None = None
    disk: FullDisk | None = None


class Workload(ABC):
    """One kind of trial. Its methods are called in this order, each with the results of the steps before."""

    def around(self, own: Resources) -> AbstractContextManager[Around]:
        """Returns the context from before the load until after the audit. May raise TrialFailed or ServiceError."""
        return nullcontext(Around())

    @abstractmethod
    def load(self, own: Resources) -> Loaded | None:
        """Loads the topic; None if records come later. May raise TrialFailed or ServiceError."""

    @abstractmethod
    def run(self, own: Resources, around: Around, loaded: Loaded | None) -> Timeline:
        """Runs the connector. An error that ends the run early is in the result."""

    def read(self, own: Resources, around: Around, found: Measured) -> After:
        """Reads after the audit what only this workload needs. May raise ServiceError."""
        return After()

    @abstractmethod
    def figures(self, found: Measured, reasons: list[Reason]) -> Figures:
        """Returns the figures of the trial, given the reasons so far."""
