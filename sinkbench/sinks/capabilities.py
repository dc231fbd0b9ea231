"""What a sink can do beyond its core: each capability is an object that is there, or None.

All raise ServiceError if the sink does not answer. None of them is safe in two threads at once, unless it says so.
"""

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
from sinkbench.sinks.reading import SinkBloat, SinkOthers, SinkPooling
from sinkbench.stack.smalldisk import SmallDisk

__all__ = [
    "ASK_SECONDS",
    "ArrivalTimes",
    "Capabilities",
    "Changes",
    "DiskToFill",
    "Documents",
    "Filling",
    "FullDisk",
    "OtherClients",
    "Pooler",
    "Queries",
    "Refusing",
    "Replication",
    "ServiceSettings",
    "needed",
]

T = TypeVar("T")

ASK_SECONDS = 20.0
"""How long a query may take."""


class ServiceSettings(Protocol):
    """Sets the sink's services for the time of a trial, and back. `SinkKind.settable` says what can be set."""

    def refusal(self, given: Given) -> str | None:
        """Why the services, as they run now, cannot be set so, in one line that says what to do; None if they can."""

    def apply(self, given: Given) -> None:
        """From now on the services are set so, for what `create` makes and for new connections, until `revert`.

        Part of it may be done if this raises.
        """

    def revert(self) -> list[str]:
        """Ends what `apply` began, also in a process that was killed. Returns what was set back, for a person."""


class ArrivalTimes(Protocol):
    """When records arrived."""

    def watch(self, target: str, interval_seconds: float) -> AbstractContextManager[ArrivalWatch]:
        """A watch for as long as the context lasts.

        Where the sink does not keep the times itself, it is read that often, in a thread of its own. The watch has a
        connection of its own, which can be opened after the sink's was lost.
        """

    def rate(self, target: str, records: int) -> float | None:
        """Records per second from the 10th to the 90th percent of `records`, by the times that the sink itself keeps.

        None where it keeps none, or has not that many. Needs no sampling while records arrive.
        """


class OtherClients(Protocol):
    """Tells other clients of the sink from the trial's."""

    def seen(self) -> SinkOthers:
        """What other clients have there now."""

    def exclude_existing(self) -> None:
        """Connections that are open now belong to others.

        As long as they stay open, `Sink.read` counts them among its signs as `OTHER_CONNECTIONS` and
        `OTHER_POOL_CLIENTS`.
        """

    def diverted(self, target: str) -> str | None:
        """Why what the connectors write no longer goes to `target`, for a person; None if it does."""


class Replication(Protocol):
    """Checks the copies of a target before a connector is made, and when it is gone."""

    def check(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        """Whether copies of `target` are in sync and on all their nodes.

        `config` is the connector's configuration, whose sessions may have commits wait for more. What cannot be seen is
        among `ReplicationState.unchecked`.
        """


class Documents(Protocol):
    """Gives stored records back. What is not kept as a document is left out."""

    def some(self, target: str, run: str, seqs: Sequence[int]) -> Mapping[int, Any]:
        """The documents whose `bench.run` is `run` and whose `bench.seq` is in `seqs`, by that, as Python's json."""

    def all(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        """The documents whose `bench.run` is `run`: all, or evenly by `bench.seq` one in `one_in`.

        In chunks of `at_once`, in any order, each as `loadgen.checksum.parse` reads it.
        """


class Queries(Protocol):
    """Answers queries."""

    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        """What `target` answers, after `settle` or while records come; then without `explain`.

        With `explain` it is found out whether an index helps. Raises ServiceError if the query fails, or takes longer
        than `ASK_SECONDS`.
        """


class Changes(Protocol):
    """Audits records that change keys."""

    def versions(self, target: str, run: str) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
        """The key and the `bench.seq` of every row whose `bench.run` is `run`, in chunks, in any order.

        Raises TargetError if the rows have no key.
        """

    def bloat(self, target: str) -> SinkBloat:
        """What changes have left in `target`: asked before a connector is made, and when it is gone."""


class Filling(Protocol):
    """Puts rows into a target before a trial."""

    def fill(self, target: str, rows: int, documents: Sequence[bytes]) -> Iterator[int]:
        """Puts `rows` copies of the JSON documents, in turn, into the empty `target`, and lets it come to rest.

        Yields from time to time how many are there. Rows that have a key get keys that no record has.
        """


class Pooler(Protocol):
    """A connection pooler before the sink."""

    def read(self) -> SinkPooling:
        """How it is set."""


class Refusing(Protocol):
    """Has the server refuse writes, for the fault `refuse`. `SinkKind.refuses` says for which reasons."""

    def refuse(self, target: str, why: str) -> None:
        """The server refuses every write to `target`, with an error that a connector sees, until `accept`.

        "no connection" is asked again and again. What this takes is part of `target`, so that it goes with it, or of a
        connection of this sink.
        """

    def accept(self, target: str) -> None:
        """Ends that; nothing if it was not begun."""


class FullDisk(Protocol):
    """A disk that can be full on purpose. Each method may be called again, and from any thread."""

    def fill(self) -> None:
        """From now on there is no room for records. Called again and again, since there may be room again."""

    def free(self) -> None:
        """Gives the room back; nothing if all of it is there."""


class DiskToFill(Protocol):
    """The disk for the fault `fill`. `SinkKind.full_disk` says how it can be full."""

    def disk(
        self, target: str, small_disk: Callable[[], AbstractContextManager[SmallDisk]]
    ) -> AbstractContextManager[FullDisk]:
        """The disk of `target`, which is not full yet, as long as the context lasts.

        A sink of `SMALL_DISK` mounts one, and has `target` on it meanwhile.
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
        queries: without it, it is not known what the target can answer.
        changes: without it, a plan's `load.changes` are refused.
        filling: without it, `rows_before` are refused.
        pooler: without it, there is no table of waits in the pool.
        refusing: for `SinkKind.refuses`.
        disk_to_fill: for `SinkKind.full_disk`.
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
    """A capability that the sink's `SinkKind` declares. Raises StackError if its `Sink` lacks it."""
    if capability is None:
        raise StackError(f"the sink has no capability {name}, which its SinkKind declares; correct its package")
    return capability
