"""A sink: what a trial asks of it, and what its module declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.fields import Survey
from sinkbench.analysis.query import Answer, Query
from sinkbench.analysis.replication import ReplicationState
from sinkbench.analysis.settable import Given, Settable
from sinkbench.bottleneck.rules import Rule
from sinkbench.sinks.arrivals import ArrivalWatch
from sinkbench.sinks.proposal import Proposal
from sinkbench.sinks.reading import SinkBloat, SinkOthers, SinkPooling, SinkReading, SinkSettings
from sinkbench.sinks.state import Checkup
from sinkbench.sinks.writing import Destination, Writer
from sinkbench.stack import Endpoints
from sinkbench.stack.registry import DeclaredSink
from sinkbench.stack.smalldisk import SmallDisk

__all__ = ["ASK_SECONDS", "GUARDED", "SMALL_DISK", "FullDisk", "Sink", "SinkKind"]

ASK_SECONDS = 20.0
"""How long a query may take."""
GUARDED: Literal["guarded"] = "guarded"
"""A sink that takes no more records before its disk is full, and can be told to do so now."""
SMALL_DISK: Literal["small disk"] = "small disk"
"""A sink whose target can be moved to a small disk, which is then filled."""


class FullDisk(Protocol):
    """A disk that can be full on purpose. Each method may be called again, and from any thread."""

    def fill(self) -> None:
        """From now on there is no room for records: the server says of writes what it says where its disk is full.

        Asked again and again meanwhile, since there may be room again.
        """

    def free(self) -> None:
        """Gives the room back; nothing if all of it is there."""


class Sink(Protocol):
    """A place for records, as a trial uses it. Not safe in two threads at once."""

    name: str

    def refuses_settings(self, given: Given) -> str | None:
        """Why its services, as they run now, cannot be set so, in one line that says what to do; None if they can.

        Asked of what `SinkKind.settable` allows, before the first trial. A sink without `settable` lacks this method
        and the next two.
        """

    def apply(self, given: Given) -> None:
        """From now on its services are set so, for what `create` makes and for connections that begin, until `revert`.

        Raises ServiceError if that fails; part of it may be done then.
        """

    def revert(self) -> list[str]:
        """Ends what `apply` began, by this or another process; nothing if nothing is left of it.

        Returns:
            What was set back, for a person, such as "the setting synchronous_commit of postgres".
        """

    def create(self, target: str, file: Path | None = None) -> None:
        """Makes an empty index or table named `target`, where the connectors will write from now on.

        It bears a mark that it is sinkbench's. `file` says what it is like; None: the sink's own file does. A sink
        without `SinkKind.target_ending` is asked without it. Raises TargetError, which ends the run, if the file cannot
        be used, and StackError if it cannot be made for another reason, such as that it is there already.
        """

    def notes(self, target: str) -> list[str]:
        """What whoever reads the figures of `target` should know of it, such as what the cluster has added to it.

        The same texts for every target that is made alike. Asked once, after `create`.
        """

    def drop(self, target: str) -> None:
        """Removes it; one that is not there is fine. Raises StackError for one without sinkbench's mark."""

    def columns(self, target: str) -> frozenset[str] | None:
        """The names of its columns, in lower case; None if it has none. A sink without this method does not tell."""

    def read(self, target: str) -> SinkReading:
        """How things stand now; cheap enough to be asked four times a second."""

    def others(self) -> SinkOthers:
        """What others have there. A sink without this method does not tell."""

    def exclude_existing(self) -> None:
        """Connections that are open now belong to others: from now on `read` counts them as `OTHER_CONNECTIONS` and
        `OTHER_POOL_CLIENTS` among its signs, for as long as they stay open.

        A sink without this method cannot tell whose its connections are.
        """

    def arrivals(self, target: str, interval_seconds: float) -> AbstractContextManager[ArrivalWatch]:
        """A watch of when records arrive in `target`, for as long as the context lasts.

        Where the sink does not keep that itself, it is looked at that often, in a thread of its own. The watch has a
        connection of its own: it can still be read when this one was lost.
        """

    def diverted(self, target: str) -> str | None:
        """Why what the connectors write no longer goes to `target`, for a person; None if it does."""

    def stamped_rate(self, target: str, records: int) -> float | None:
        """Records per second from the 10th to the 90th percent of `records`, by the times that the sink itself keeps.

        None where it keeps none, or has not that many. Needs no look while records arrive.
        """

    def settle(self, target: str) -> None:
        """Makes all that was written visible to `sequences` and `count`."""

    def writes(self, target: str) -> int | None:
        """Number of writes that the sink has taken so far: HTTP requests, or transactions that wrote. Only grows."""

    def pooling(self) -> SinkPooling | None:
        """How the pooler before it is set; None without one. A sink without this method has none."""

    def connection_limit(self) -> int | None:
        """How many connections the server accepts; None if it has no such limit."""

    def settings(self, target: str) -> SinkSettings:
        """How the server, or `target` itself, is set, as far as it is told: it may be kept back, which is no error."""

    def settings_of(self, target: str, config: Mapping[str, str]) -> SinkSettings:
        """The same for sessions of a connector of this configuration, which may set something themselves.

        A sink without this method sets all sessions alike.
        """

    def replication(self, target: str) -> ReplicationState:
        """Whether what must hold while records come does: that copies of `target` are in sync and on all their nodes.

        Asked before a connector is made and when it is gone. What cannot be looked at is among
        `ReplicationState.unchecked`. A sink without this method does not tell.
        """

    def replication_of(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        """The same for sessions of a connector of this configuration, whose commits may wait for more.

        A sink without this method has all commits wait for the same.
        """

    def count(self, target: str) -> int:
        """Number of records in `target`, exactly."""

    def disk_bytes(self, target: str) -> int | None:
        """Bytes that the records of `target` take on the sink's disk, with their indexes and without their copies.

        What is still in memory is written first. None if the sink does not tell.
        """

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        """`bench.seq` of every record in `target` whose `bench.run` is `run`, in chunks, in any order."""

    def versions(self, target: str, run: str) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
        """The key and the `bench.seq` of every row of `target` whose `bench.run` is `run`, in chunks, in any order.

        Raises TargetError if its rows have no key. A sink without this method takes no load of changes.
        """

    def fill(self, target: str, rows: int, documents: Sequence[bytes]) -> Iterator[int]:
        """Puts that many rows into the empty `target`, copies of the JSON documents in turn, and lets it come to rest.

        Yields from time to time how many are there. Rows that have a key get keys that no record has. A sink without
        this method takes no `rows_before`.
        """

    def bloat(self, target: str) -> SinkBloat:
        """What changes have left in `target`, asked before a connector of a load of changes, and when it is gone.

        A sink without this method does not tell.
        """

    def documents(self, target: str, run: str, seqs: Sequence[int]) -> Mapping[int, Any]:
        """What `target` holds of the records whose `bench.run` is `run` and whose `bench.seq` is in `seqs`, by that.

        Each as Python's json reads it. What is not there, or is not kept as a document, is left out. A sink without
        this method does not tell.
        """

    def contents(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        """The documents of `target` whose `bench.run` is `run`: all, or evenly by `bench.seq` one in `one_in`.

        In chunks of `at_once`, in any order, each as `loadgen.checksum.parse` reads it. What is not kept as a document
        is left out. A sink without this method does not tell.
        """

    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        """What `target` answers. Raises ServiceError if the query fails, or takes longer than `ASK_SECONDS`.

        Asked after `settle`, or while records come; then without `explain`, which finds out whether an index helps. A
        sink without this method cannot be asked.
        """

    def refuse(self, target: str, why: str) -> None:
        """Has the server refuse every write to `target`, with an error that a connector sees, until `accept`.

        `why` is one of `SinkKind.refuses`; "no connection" is asked again and again. Whatever it takes is part of
        `target`, so that it goes with it, or of a connection of this sink. One without this method cannot be told to.
        """

    def accept(self, target: str) -> None:
        """Ends what `refuse` began; nothing if that did not come to be."""

    def disk_to_fill(
        self, target: str, small_disk: Callable[[], AbstractContextManager[SmallDisk]]
    ) -> AbstractContextManager[FullDisk]:
        """The disk of `target`, which is not full yet, as long as the context lasts.

        A sink with a `SMALL_DISK` mounts one, and has `target` on it meanwhile. A sink without this method, or without
        `SinkKind.full_disk`, has no disk to fill.
        """

    def leftovers(self, prefix: str) -> list[str]:
        """The targets whose name begins with `prefix`, and that bear sinkbench's mark."""

    def offer_by_hand(self) -> None:
        """Makes what a connector file writes to as it stands, if it is not there: the index or table "tides"."""

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
        writers: the ways in which a plain client can write to it, by name: each opens a connection.
        ways: those of them that its limit is searched by.
        rules: the causes that can limit a trial within it. They look at the signs that its readings hold.
        target_ending: how the names of files end that say what an index or table is like, such as `.sql`; None: the
            sink takes none, and a plan must not name one for it.
        columns: whether it can audit records whose members are columns: those of the forms that begin with `row`.
        stamps: whether it keeps the time of every insertion, so that `stamped_rate` needs no probes.
        rejected: the sign that counts the writes that it has rejected; None if it has none.
        clients: the Python packages that speak to it, whose versions belong to a run's environment.
        refusal: tries the connection that a connector's configuration describes, and returns in one line why it does
            not come about; None if it does, or cannot be tried. Is given the stack's endpoints and the configuration,
            of which it must open no file that the endpoints do not name. Asked where tasks have failed.
        settable: what of its services a plan can set for the time of a trial, by the service; empty: nothing.
        refuses: for what reasons its `Sink` can be told to refuse records: "read only", "no right", "no connection".
        full_disk: how its disk can be full on purpose: `GUARDED` or `SMALL_DISK`; None: it cannot.
        promotes: whether a stack that has a replica of it can be told to promote that, for the fault `promote`.
        propose: the file of an index or a table for records of somebody's own: is given what they are like, the
            checkout, and what they are called. None if it needs none.
        checkup: how `sinkbench doctor` looks at it; None: it does not, and says so.
    """

    open: Callable[[Endpoints, Path], Sink]
    writers: Mapping[str, Callable[[Destination], Writer]]
    ways: tuple[str, ...] = ()
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
    promotes: bool = False
    propose: Callable[[Survey, Path, str], Proposal] | None = None
    checkup: Checkup | None = None

    def __post_init__(self) -> None:
        # It was a yes or no before there were reasons.
        if not isinstance(self.refuses, tuple):
            raise TypeError(f'refuses is a tuple of reasons, such as ("read only",), found {self.refuses!r}')
