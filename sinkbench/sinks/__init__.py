"""The sinks: where the records end up. One module for each, all with the methods of `Sink`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sinkbench.errors import StackError
from sinkbench.sinks.arrivals import Arrivals, ArrivalWatch
from sinkbench.sinks.elasticsearch import ElasticsearchSink
from sinkbench.sinks.postgres import PostgresSink
from sinkbench.sinks.reading import SinkReading, SinkSettings
from sinkbench.stack import Endpoints

__all__ = ["SINKS", "ArrivalWatch", "Arrivals", "Sink", "SinkReading", "SinkSettings", "open_sink", "sinks_of"]


class Sink(Protocol):
    """A place for records, as a trial uses it. Not safe in two threads at once."""

    name: str

    def create(self, target: str) -> None:
        """Makes an empty index or table named `target`, where the connectors will write from now on.

        It bears a mark that it is sinkbench's. Raises StackError if it cannot be made, or is there already.
        """
        ...

    def drop(self, target: str) -> None:
        """Removes it; one that is not there is fine. Raises StackError for one without sinkbench's mark."""
        ...

    def read(self, target: str) -> SinkReading:
        """How things stand now; cheap enough to be asked four times a second."""
        ...

    def arrivals(self, target: str, interval_seconds: float) -> AbstractContextManager[ArrivalWatch]:
        """A watch of when records arrive in `target`, for as long as the context lasts.

        Where the sink does not keep that itself, it is looked at that often, in a thread of its own.
        """
        ...

    def diverted(self, target: str) -> str | None:
        """Why what the connectors write no longer goes to `target`, for a person; None if it does."""
        ...

    def stamped_rate(self, target: str, records: int) -> float | None:
        """Records per second from the 10th to the 90th percent of `records`, by the times that the sink itself keeps.

        None where it keeps none, or has not that many. Needs no look while records arrive.
        """
        ...

    def settle(self, target: str) -> None:
        """Makes all that was written visible to `sequences` and `count`."""
        ...

    def writes(self, target: str) -> int | None:
        """Number of writes that the sink has taken so far: HTTP requests, or transactions that wrote. Only grows."""
        ...

    def connection_limit(self) -> int | None:
        """How many connections the server accepts; None if it has no such limit."""
        ...

    def settings(self, target: str) -> SinkSettings:
        """How the server, or `target` itself, is set, as far as it is told: it may be kept back, which is no error."""
        ...

    def count(self, target: str) -> int:
        """Number of records in `target`, exactly."""
        ...

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        """`bench.seq` of every record in `target` whose `bench.run` is `run`, in chunks, in any order."""
        ...

    def leftovers(self, prefix: str) -> list[str]:
        """The targets whose name begins with `prefix`, and that bear sinkbench's mark."""
        ...

    def offer_by_hand(self) -> None:
        """Makes what a connector file writes to as it stands, if it is not there: the index or table "tides"."""
        ...

    def close(self) -> None:
        """Closes its connections."""
        ...


def _elasticsearch(endpoints: Endpoints, checkout: Path) -> Sink:
    if endpoints.elasticsearch is None:
        raise StackError(_absent("elasticsearch", endpoints))
    return ElasticsearchSink(
        endpoints.elasticsearch,
        endpoints.elasticsearch_index,
        checkout / "elasticsearch" / "index.json",
        endpoints.elasticsearch_access,
    )


def _postgres(endpoints: Endpoints, checkout: Path) -> Sink:
    if endpoints.postgres is None:
        raise StackError(_absent("postgres", endpoints))
    return PostgresSink(
        endpoints.postgres,
        endpoints.pgbouncer_admin,
        checkout / "postgres" / "schema.sql",
        shared=endpoints.shared,
    )


def _absent(sink: str, endpoints: Endpoints) -> str:
    where = endpoints.stack_file or "this stack"
    return f"{where}: has no '{sink}', which a pipeline of the plan writes to; add that key, or leave the pipeline out"


SINKS: dict[str, Callable[[Endpoints, Path], Sink]] = {"elasticsearch": _elasticsearch, "postgres": _postgres}


def sinks_of(endpoints: Endpoints) -> list[str]:
    """Names of the sinks that there are."""
    there = {"elasticsearch": endpoints.elasticsearch, "postgres": endpoints.postgres}
    return [name for name in SINKS if there.get(name) is not None]


def open_sink(name: str, endpoints: Endpoints, checkout: Path) -> Sink:
    """The sink of that name, connected. Raises StackError if it does not answer, or there is no such sink."""
    if name not in SINKS:
        raise StackError(f"connectors/{name}: no sink is called that; there are {', '.join(SINKS)}")
    return SINKS[name](endpoints, checkout)
