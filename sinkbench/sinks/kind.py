"""A sink: what a trial needs of it, and what its module declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.fields import Survey
from sinkbench.analysis.settable import Settable
from sinkbench.bottleneck.rules import Rule
from sinkbench.sinks.capabilities import Capabilities
from sinkbench.sinks.proposal import Proposal
from sinkbench.sinks.reading import SinkReading, SinkSettings
from sinkbench.sinks.state import Checkup
from sinkbench.sinks.writing import Destination, Writer
from sinkbench.stack import Endpoints
from sinkbench.stack.registry import DeclaredSink

GUARDED: Literal["guarded"] = "guarded"
"""A sink that refuses records before its disk is full, and can be made to do so now."""
SMALL_DISK: Literal["small disk"] = "small disk"
"""A sink whose target can be moved to a small disk, which is then filled."""


class Created(NamedTuple):
    """A created target: lower-case `columns` or None, and `notes` for readers, the same for targets created alike."""

    columns: frozenset[str] | None = None
    notes: tuple[str, ...] = ()


class Sink(Protocol):
    """A place for records, as a trial uses it. Not thread-safe; all methods raise ServiceError without an answer."""

    capabilities: Capabilities

    def create(self, target: str, file: Path | None = None) -> Created:
        """Creates an empty index or table, marked as sinkbench's, where the connectors write from now on. `file`
        defines it; None means the sink's own file. Raises TargetError, which ends the run, if the file cannot be used,
        and StackError if creation fails for another reason.
        """

    def drop(self, target: str) -> None:
        """Removes the target, if it exists. Raises StackError if it lacks sinkbench's mark."""

    def leftovers(self, prefix: str) -> list[str]:
        """The targets with sinkbench's mark whose names begin with `prefix`."""

    def offer_default(self) -> None:
        """Creates what connector files write to unchanged, the index or table "tides", if it does not exist."""

    def read(self, target: str) -> SinkReading:
        """Its state now; cheap enough for four calls a second."""

    def settle(self, target: str) -> None:
        """Makes all writes visible to `sequences` and `count`."""

    def count(self, target: str) -> int:
        """The exact number of records in `target`."""

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        """`bench.seq` of every record of `run` in `target`, in chunks, in any order."""

    def settings(self, target: str, config: Mapping[str, str]) -> SinkSettings:
        """Settings of the server or `target` for sessions of a connector with this configuration; None is unknown."""

    def writes(self, target: str) -> int | None:
        """HTTP requests, or transactions that wrote, so far; only grows. None if unknown."""

    def disk_bytes(self, target: str) -> int | None:
        """Bytes of `target` on disk with its indexes, without copies, after memory is flushed; None if unknown."""

    def connection_limit(self) -> int | None:
        """The number of connections that the server accepts; None if it has no limit."""

    def close(self) -> None:
        """Closes its connections."""


@dataclass(frozen=True)
class SinkKind(DeclaredSink):
    """All that is particular to one kind of sink. It is the sink's entry point, in the group `sinkbench.sinks`:

        [project.entry-points."sinkbench.sinks"]
        postgres = "sinkbench.sinks.postgres:KIND"

    Attributes:
        open: connects, given the stack's endpoints and the checkout. Raises ServiceError if the sink does not answer.
        writers: the ways in which plain clients can write, by name; the limit is searched by each.
        rules: bottlenecks within the sink, judged by the signs of its readings.
        target_ending: ending of the files that define an index or table, such as `.sql`; None if a plan must not name
            one.
        columns: whether it can audit records in columns: the forms that begin with `row`.
        stamps: whether it keeps the time of every insertion, so that `ArrivalTimes.rate` needs no probes.
        rejected: the sign that counts rejected writes.
        clients: Python packages whose versions belong to a run's environment.
        refusal: tries the connection that a connector's configuration describes, after tasks have failed; returns its
            error in one line, None if it connects or cannot be tried. Must open no file that the endpoints do not name.
        settable: what a plan can set for a trial, by service.
        refuses: reasons for which `Refusing` works: "read only", "no right", "no connection".
        full_disk: how its disk can be filled: `GUARDED` or `SMALL_DISK`; None if it cannot.
        propose: makes an index or table file from a survey of your own records, the checkout, and the records' name.
        checkup: how `sinkbench doctor` checks it; None if it does not, which it says.
    """

    open: Callable[[Endpoints, Path], Sink]
    writers: Mapping[str, Callable[[Destination], Writer]]
    rules: tuple[Rule, ...] = ()
    target_ending: str | None = None
    columns: bool = False
    stamps: bool = False
    rejected: str | None = None
    clients: tuple[str, ...] = ()
    refusal: Callable[[Endpoints, Mapping[str, str]], str | None] | None = None
    settable: Mapping[str, Settable] = field(default_factory=dict)
    refuses: tuple[str, ...] = ()
    full_disk: Literal["guarded", "small disk"] | None = None
    propose: Callable[[Survey, Path, str], Proposal] | None = None
    checkup: Checkup | None = None
