"""A sink: what a trial asks of it, and what its module declares."""

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

__all__ = ["GUARDED", "SMALL_DISK", "Created", "Sink", "SinkKind"]

GUARDED: Literal["guarded"] = "guarded"
"""A sink that takes no more records before its disk is full, and can be told to do so now."""
SMALL_DISK: Literal["small disk"] = "small disk"
"""A sink whose target can be moved to a small disk, which is then filled."""


class Created(NamedTuple):
    """A target that was made.

    Attributes:
        columns: their names, in lower case; None if it has none, or the sink does not tell.
        notes: what readers of the trial's figures should know of it, such as what the cluster has added. The same texts
            for every target that is made alike.
    """

    columns: frozenset[str] | None = None
    notes: tuple[str, ...] = ()


class Sink(Protocol):
    """A place for records, as a trial uses it. Not safe in two threads at once.

    Its methods raise ServiceError if it does not answer.

    Attributes:
        capabilities: what it can do beyond these methods.
    """

    capabilities: Capabilities

    def create(self, target: str, file: Path | None = None) -> Created:
        """Makes an empty index or table named `target`, where the connectors will write from now on.

        It is marked as sinkbench's. `file` says what it is like; None: the sink's own file. Raises TargetError, which
        ends the run, if the file cannot be used, and StackError if it cannot be made for another reason.
        """

    def drop(self, target: str) -> None:
        """Removes it; one that is not there is fine. Raises StackError for one without sinkbench's mark."""

    def leftovers(self, prefix: str) -> list[str]:
        """The targets whose name begins with `prefix`, and that are marked as sinkbench's."""

    def offer_default(self) -> None:
        """Makes what a connector file writes to as it stands, the index or table "tides", if it is not there."""

    def read(self, target: str) -> SinkReading:
        """Its state now; cheap enough to be asked four times a second."""

    def settle(self, target: str) -> None:
        """Makes all that was written visible to `sequences` and `count`."""

    def count(self, target: str) -> int:
        """Number of records in `target`, exactly."""

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        """`bench.seq` of every record in `target` whose `bench.run` is `run`, in chunks, in any order."""

    def settings(self, target: str, config: Mapping[str, str]) -> SinkSettings:
        """How the server, or `target` itself, is set for sessions of a connector of this configuration.

        What the server does not tell is None, which is no error.
        """

    def writes(self, target: str) -> int | None:
        """Writes that the sink has taken so far: HTTP requests, or transactions that wrote. Only grows.

        None if it does not tell.
        """

    def disk_bytes(self, target: str) -> int | None:
        """Bytes that the records of `target` take on disk, with their indexes and without their copies.

        What is still in memory is written first. None if the sink does not tell.
        """

    def connection_limit(self) -> int | None:
        """How many connections the server accepts; None if it has no such limit."""

    def close(self) -> None:
        """Closes its connections."""


@dataclass(frozen=True)
class SinkKind(DeclaredSink):
    """All that is particular to one kind of sink. It is the entry point of that sink, in the group `sinkbench.sinks`:

        [project.entry-points."sinkbench.sinks"]
        postgres = "sinkbench.sinks.postgres:KIND"

    Attributes:
        open: connects to the sink of a stack that has it; is given the stack's endpoints and the checkout. Raises
            ServiceError if it does not answer.
        writers: the ways in which a plain client can write to it, by name: each opens a connection. Its limit is
            searched by each.
        rules: the causes that can limit a trial within it. They look at the signs that its readings hold.
        target_ending: how the names of files end that say what an index or table is like, such as `.sql`; None: the
            sink takes none, and a plan must not name one for it.
        columns: whether it can audit records whose members are columns: those of the forms that begin with `row`.
        stamps: whether it keeps the time of every insertion, so that `ArrivalTimes.rate` needs no probes.
        rejected: the sign that counts the writes that it has rejected; None if it has none.
        clients: the Python packages that speak to it, whose versions belong to a run's environment.
        refusal: tries the connection that a connector's configuration describes, and returns in one line why it does
            not come about; None if it does, or cannot be tried. Is given the stack's endpoints and the configuration,
            of which it must open no file that the endpoints do not name. Asked where tasks have failed.
        settable: what of its services a plan can set for the time of a trial, by the service; empty: nothing.
        refuses: for what reasons its `Sink` can be told to refuse records: "read only", "no right", "no connection".
        full_disk: how its disk can be full on purpose: `GUARDED` or `SMALL_DISK`; None: it cannot.
        propose: the file of an index or a table for a user's own records: is given what they are like, the
            checkout, and what they are called. None if it needs none.
        checkup: how `sinkbench doctor` looks at it; None: it does not, and says so.
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
