"""What a sink can do beyond its core. All raise ServiceError without an answer; only `FullDisk` is thread-safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.query import Answer, Query
from sinkbench.analysis.replication import ReplicationState
from sinkbench.analysis.settable import Given
from sinkbench.errors import StackError
from sinkbench.sinks.arrivals import ArrivalWatch
from sinkbench.sinks.reading import PoolReading, SinkBloat, SinkOthers, SinkPooling
from sinkbench.stack.smalldisk import SmallDisk

T = TypeVar("T")

ASK_SECONDS = 20.0
"""The longest time that a query may take."""


class ServiceSettings(Protocol):
    """Sets the sink's services for a trial, and restores them. `SinkKind.settable` says what can be set."""

    def refusal(self, given: Given) -> str | None:
        """Why the running services cannot be set so, in one line with a fix; None if they can."""

    def apply(self, given: Given) -> None:
        """Sets the services until `revert`, for new targets and connections. If this raises, part of it may be done."""

    def revert(self) -> list[str]:
        """Undoes `apply`, also that of a process that was killed. Returns what was restored, for a person."""


class ArrivalTimes(Protocol):
    """Arrival times of records."""

    def watch(self, target: str, interval_seconds: float) -> AbstractContextManager[ArrivalWatch]:
        """Watches `target` while the context lasts, by a connection that can be opened after the sink's was lost. A
        sink that does not keep the times itself is read at that interval, in another thread.
        """

    def rate(self, target: str, records: int) -> float | None:
        """Records per second from the 10th to the 90th percent of `records`, by the times that the sink keeps; None if
        it keeps none or has fewer records. Needs no sampling while records arrive.
        """


class OtherClients(Protocol):
    """Distinguishes other clients of the sink from the trial's."""

    def seen(self) -> SinkOthers:
        """Other clients' open connections, and the records that were written so far."""

    def exclude_existing(self) -> None:
        """Counts all connections that are open now as others'. While they stay open, `Sink.read` has them among its
        signs as `OTHER_CONNECTIONS` and `OTHER_POOL_CLIENTS`.
        """

    def diverted(self, target: str) -> str | None:
        """Why connectors' writes no longer go to `target`, for a person; None if they do."""


class Replication(Protocol):
    """Checks the copies of a target before a connector is created and after it is deleted."""

    def check(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        """Whether copies of `target` are in sync and on all their nodes. Sessions of a connector with this `config` may
        make commits wait for more. `ReplicationState.unchecked` has what cannot be seen.
        """


class Documents(Protocol):
    """Returns stored records. What is not kept as a document is left out."""

    def some(self, target: str, run: str, seqs: Sequence[int]) -> Mapping[int, Any]:
        """The documents of `run` whose `bench.seq` is in `seqs`, by `bench.seq`, as Python's json."""

    def all(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        """The documents of `run` in chunks of `at_once`, in any order, as `loadgen.checksum.parse` reads them: all, or
        one in `one_in` evenly by `bench.seq`.
        """


class Queries(Protocol):
    """Answers queries."""

    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        """Asks `target`, after `settle` or, without `explain`, while records arrive. `explain` finds out whether
        an index helps. Raises ServiceError if the query fails or takes longer than `ASK_SECONDS`.
        """


class Changes(Protocol):
    """Audits records that change keys."""

    def versions(self, target: str, run: str) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
        """The key and `bench.seq` of every row of `run`, in any order. Raises TargetError if the rows have no key."""

    def bloat(self, target: str) -> SinkBloat:
        """What changes have left in `target`; read before a connector is created and after it is deleted."""


class Filling(Protocol):
    """Puts rows into a target before a trial."""

    def fill(self, target: str, rows: int, documents: Sequence[bytes]) -> Iterator[int]:
        """Inserts `rows` copies of the JSON documents, in turn, into the empty `target`, and waits until the sink is
        idle. Yields the number of rows from time to time. Keys of rows, if they have any, are those of no record.
        """


class Pooler(Protocol):
    """The connection pooler of a sink."""

    def read(self) -> SinkPooling:
        """The pooler's settings."""

    def connections(self) -> PoolReading:
        """Its connections now, and how long clients wait. Called in another thread than the sink's other methods."""


class Refusing(Protocol):
    """Makes the server refuse writes, for the fault `refuse`. `SinkKind.refuses` lists the reasons."""

    def refuse(self, target: str, why: str) -> None:
        """Makes the server refuse every write to `target`, with an error that a connector sees, until `accept`. For "no
        connection" it is called repeatedly. What it creates is part of `target` and removed with it, or of a connection
        of this sink.
        """

    def accept(self, target: str) -> None:
        """Ends `refuse`; does nothing if it was not begun."""


class FullDisk(Protocol):
    """A disk that can be filled on purpose. Each method may be called repeatedly, and from any thread."""

    def fill(self) -> None:
        """Leaves no room for records. Called repeatedly, since there may be room again."""

    def free(self) -> None:
        """Gives the room back; does nothing if all of it is free."""


class DiskToFill(Protocol):
    """The disk for the fault `fill`. `SinkKind.full_disk` says how it is filled."""

    def disk(
        self, target: str, small_disk: Callable[[], AbstractContextManager[SmallDisk]]
    ) -> AbstractContextManager[FullDisk]:
        """The disk of `target` while the context lasts, not yet full. A sink of `SMALL_DISK` moves `target` there
        meanwhile.
        """


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What one sink can do; None is what it cannot.

    Attributes:
        service_settings: without it, a plan's `settings` are refused.
        times: without it, constant loads have no latency.
        others: without it, all connections count as the trial's.
        replication: without it, a note says that copies were not checked.
        documents: without it, contents are not compared, and rates are excluded from answers and ratios.
        changes: without it, a plan's `load.changes` are refused.
        filling: without it, `rows_before` are refused.
        pooler: without it, there is no table of waits in the pool.
    """

    service_settings: ServiceSettings | None = None
    times: ArrivalTimes | None = None
    others: OtherClients | None = None
    replication: Replication | None = None
    documents: Documents | None = None
    queries: Queries | None = None
    changes: Changes | None = None
    filling: Filling | None = None
    pooler: Pooler | None = None
    refusing: Refusing | None = None
    disk_to_fill: DiskToFill | None = None


def needed(capability: T | None, name: str) -> T:
    """Returns a capability that the sink's `SinkKind` declares. Raises StackError if the sink lacks it."""
    if capability is None:
        raise StackError(f"the sink has no capability {name}, which its SinkKind declares; correct its package")
    return capability
