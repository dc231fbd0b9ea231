"""A sink: what a trial needs of it, what it can do beyond that, and what its module declares. The methods of all raise
ServiceError without an answer; only `FullDisk` is thread-safe."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.connectors import Misfit, Offered
from sinkbench.analysis.fields import Survey
from sinkbench.analysis.query import Answer, Query
from sinkbench.analysis.replication import ReplicationState
from sinkbench.analysis.settable import Given, Settable
from sinkbench.bottleneck.rules import Rule
from sinkbench.errors import StackError
from sinkbench.sinks import values
from sinkbench.stack import Endpoint, Endpoints
from sinkbench.stack.registry import DeclaredSink
from sinkbench.stack.smalldisk import SmallDisk

SMALL_DISK: Literal["small disk"] = "small disk"
T = TypeVar("T")
SmallDiskMaker = Callable[[], AbstractContextManager[SmallDisk]]

ASK_SECONDS = 20.0


class ServiceSettings(Protocol):
    """Sets the sink's services for a trial, and restores them. `SinkKind.settable` says what can be set."""

    def refusal(self, given: Given) -> str | None:
        """Why the running services cannot be set so, in one line with a fix; None if they can."""

    def apply(self, given: Given) -> None:
        """Sets the services until `revert`, for new targets and connections. If this raises, part of it may be done."""

    def revert(self) -> list[str]:
        """Undoes `apply`, also that of a process that was killed. Returns what was restored, for a person."""


class ArrivalTimes(Protocol):
    def watch(self, target: str, interval_seconds: float) -> AbstractContextManager[values.ArrivalWatch]:
        """Watches `target` while the context lasts, also if the sink's connection is lost; at that interval, in another
        thread, if the sink does not keep the times itself."""

    def rate(self, target: str, records: int) -> float | None:
        """Records per second from the 10th to the 90th percent of `records`, by the times that the sink keeps; None if
        it keeps none or has fewer records. Needs no sampling while records arrive."""


class OtherClients(Protocol):
    """Distinguishes other clients of the sink from the trial's."""

    def seen(self) -> values.SinkOthers:
        """Other clients' open connections, and the records that were written so far."""

    def drop(self, name: str) -> None:
        """Removes an index or table that a connector made, as `seen` names it."""

    def exclude_existing(self) -> None:
        """Counts all open connections as others' from now on: the signs `OTHER_CONNECTIONS`, `OTHER_POOL_CLIENTS`."""

    def diverted(self, target: str) -> str | None:
        """Why connectors' writes no longer go to `target`, for a person; None if they do."""


class Replication(Protocol):
    def check(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        """Whether copies of `target` are in sync and on all nodes, before and after a connector with this `config`."""


class Documents(Protocol):
    """Returns stored records as `loadgen.checksum.parse` reads them. What is not kept as a document is left out."""

    def some(self, target: str, run: str, seqs: Sequence[int]) -> Mapping[int, Any]:
        """The documents of `run` whose `bench.seq` is in `seqs`, by `bench.seq`."""

    def all(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        """All, or one in `one_in` evenly by `bench.seq`, in any order."""


class Queries(Protocol):
    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        """Asks `target`, after `settle` or, without `explain`, while records arrive. `explain` finds out whether
        an index helps. Raises ServiceError if the query fails or takes longer than `ASK_SECONDS`."""


class Changes(Protocol):
    def versions(self, target: str, run: str) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
        """The key and `bench.seq` of every row of `run`, in any order. Raises TargetError if the rows have no key."""

    def bloat(self, target: str) -> values.SinkBloat:
        """What changes have left in `target`; read before a connector is created and after it is deleted."""


class Filling(Protocol):
    def fill(self, target: str, rows: int, documents: Sequence[bytes]) -> Iterator[int]:
        """Inserts `rows` copies of the JSON documents, in turn, into the empty `target`, and waits until the sink is
        idle. Yields the number of rows from time to time. Keys of rows, if they have any, are those of no record."""


class PoolerSettings(Protocol):
    def read(self) -> values.SinkPooling:
        """The pooler's settings."""

    def connections(self) -> values.PoolReading:
        """Its connections now, and how long clients wait. Called in another thread than the sink's other methods."""


class Refusing(Protocol):
    def refuse(self, target: str, why: str) -> None:
        """Makes the server refuse every write to `target`, with an error that a connector sees, until `accept`. `why`
        is one of `SinkKind.refuses`; for "no connection" it is called repeatedly. What it creates is part of `target`
        and removed with it, or of a connection of this sink."""

    def accept(self, target: str) -> None:
        """Ends `refuse`; does nothing if it was not begun."""


class Discarding(Protocol):
    def discard(self, target: str) -> None:
        """Makes the empty `target` acknowledge every record from now on, and keep none, until it is removed."""


class FullDisk(Protocol):
    """A disk that can be filled on purpose. Each method may be called repeatedly, and from any thread."""

    def fill(self) -> None:
        """Leaves no room for records."""

    def free(self) -> None:
        """Gives the room back, if any was taken."""


class DiskToFill(Protocol):
    def disk(self, target: str, small_disk: SmallDiskMaker) -> AbstractContextManager[FullDisk]:
        """The disk of `target`, not yet full, to which a sink of `SMALL_DISK` moves it while the context lasts."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What one sink can do; None is what it cannot. docs/sinks.md says what is left out or refused then."""

    service_settings: ServiceSettings | None = None
    times: ArrivalTimes | None = None
    others: OtherClients | None = None
    replication: Replication | None = None
    documents: Documents | None = None
    queries: Queries | None = None
    changes: Changes | None = None
    filling: Filling | None = None
    pooler: PoolerSettings | None = None
    refusing: Refusing | None = None
    disk_to_fill: DiskToFill | None = None
    discarding: Discarding | None = None


def needed(capability: T | None, name: str) -> T:
    """Returns a capability that the sink's `SinkKind` declares. Raises StackError if the sink lacks it."""
    if capability is None:
        raise StackError(f"the sink has no capability {name}, which its SinkKind declares; correct its package")
    return capability


class Sink(Protocol):
    """A place for records, as a trial uses it."""

    capabilities: Capabilities

    def create(self, target: str, file: Path | None = None) -> values.Created:
        """Creates an empty index or table, marked as sinkbench's, where the connectors write from now on, as `file` (or
        the sink's own) defines. Raises TargetError, which ends the run, if that cannot be used, else StackError."""

    def drop(self, target: str) -> None:
        """Removes the target, if it exists. Raises StackError if it lacks sinkbench's mark."""

    def leftovers(self, prefix: str) -> list[str]:
        """The targets with sinkbench's mark whose names begin with `prefix`."""

    def offer_default(self) -> None:
        """Creates what connector files write to unchanged, the index or table "tides", if it does not exist."""

    def read(self, target: str) -> values.SinkReading:
        """Its state now; cheap enough for four calls a second."""

    def settle(self, target: str) -> None:
        """Makes all writes visible to `sequences` and `count`."""

    def count(self, target: str) -> int:
        """The exact number of records in `target`."""

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        """`bench.seq` of every record of `run` in `target`, in chunks, in any order."""

    def settings(self, target: str, config: Mapping[str, str]) -> values.SinkSettings:
        """Settings of the server or `target` for sessions of a connector with this configuration; None is unknown."""

    def writes(self, target: str) -> int | None:
        """HTTP requests, or transactions that wrote, so far; only grows. None if unknown."""

    def disk_bytes(self, target: str) -> int | None:
        """Bytes of `target` on disk with its indexes, without copies, after memory is flushed; None if unknown."""

    def connection_limit(self) -> int | None:
        """The number of connections that the server accepts; None if it has no limit."""

    def close(self) -> None:
        """Closes its connections."""


class Existing(Protocol):
    """A target that is there already, whoever has filled it; it is only read. `columns` has for each column "number",
    "text", "document" (JSON) or "other", whose values are not compared; empty if the rows are documents."""

    @property
    def columns(self) -> Mapping[str, str]: ...

    def rows(self, columns: Sequence[str], at_once: int) -> Iterator[list[dict[str, Any]]]:
        """All rows, in chunks, by column, as `checksum.parse` reads JSON, with `_id`; of one moment if it can."""

    def close(self) -> None:
        """Closes its connections."""


@dataclass(frozen=True)
class SinkKind(DeclaredSink):
    """All that is particular to one kind of sink: its entry point, in the group `sinkbench.sinks`.

    Attributes:
        open: connects, given the stack's endpoints and the checkout. Raises ServiceError if the sink does not answer.
        writers: the ways in which plain clients can write, by name; the limit is searched by each.
        rules: bottlenecks within the sink, judged by the signs of its readings.
        target_ending: of files that define an index or table, such as `.sql`; None if a plan must not name one.
        columns: whether it can audit records in columns: the forms that begin with `row`.
        stamps: whether it keeps the time of every insertion, so that `ArrivalTimes.rate` needs no probes.
        rejected: the sign that counts rejected writes.
        clients: Python packages whose versions belong to a run's environment.
        refusal: why a login as in a connector's configuration fails, in one line; None if it does not or is not tried.
            Must connect to the endpoints alone.
        settable: what a plan can set for a trial, by service.
        refuses: reasons for which `Refusing` works: "read only", "no right", "no connection".
        full_disk: how its disk is filled: "guarded" refuses records before it is full, and can be made to do so;
            otherwise the target moves to a small disk. None if it cannot be filled.
        misfits: yields why a connector's configuration does not fit the load or the trial's target, at this endpoint.
        propose: makes an index or table file from a survey of your own records, the checkout, and the records' name.
        checkup: how `sinkbench doctor` checks it; None if it does not, which it says.
        existing: opens a target by the name that a user gives, for `sinkbench verify`. Raises StackError, with the
            nearest name, if there is none."""

    open: Callable[[Endpoints, Path], Sink]
    writers: Mapping[str, Callable[[values.Destination], values.Writer]]
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
    misfits: Callable[[Mapping[str, str], Offered, Endpoint | None], Iterable[Misfit]] | None = None
    propose: Callable[[Survey, Path, str], values.Proposal] | None = None
    checkup: values.Checkup | None = None
    existing: Callable[[Endpoints, str], Existing] | None = None
