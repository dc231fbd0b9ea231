"""What a connector is not alone with: other connectors, other load, and connections that are none of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from sinkbench.analysis.samples import OTHER_CONNECTIONS, OTHER_POOL_CLIENTS, Sample, connection_peaks, own_count
from sinkbench.errors import ServiceError
from sinkbench.results import Connections
from sinkbench.trial.bench import Bench
from sinkbench.trial.names import Names
from sinkbench.trial.others import Others, met

__all__ = ["Interference"]

# A connector's own connections are closed within so long after its tasks are gone.
CLOSING_SECONDS = 3.0


class Interference:
    """Who is there besides one trial. What cannot be looked at is not known, and spoils nothing else."""

    def __init__(self, bench: Bench, sink: str, names: Names) -> None:
        self._bench = bench
        self._sink = sink
        self._names = names
        self._looks: list[Others] = []
        self.unattributed: int | None = None
        """Connections that came while the connector ran, and were there without it; None if nobody could tell."""

    def exclude_existing(self) -> None:
        """Looks before the connector is there. Connections that are open by now are others'."""
        self.look()
        if (others := self._bench.sink(self._sink).capabilities.others) is not None:
            others.exclude_existing()

    def look(self) -> None:
        """Looks who else is there at this moment."""
        with suppress(ServiceError, OSError):
            self._looks.append(self._bench.others(self._names, [self._sink]))

    def met(self, records: int, queue: str | None = None) -> list[str]:
        """Who was there from the first look to the last, a phrase each, beside a trial of so many records.

        `queue` is the dead letter queue of its connector, and so nobody else's.
        """
        if len(self._looks) < 2:
            return []
        return met(self._looks[0], self._looks[-1], records, lambda topic: topic == queue or self._is_connects(topic))

    def _is_connects(self, topic: str) -> bool:
        """Whether Connect keeps its connectors' status in that topic; not if nobody tells."""
        with suppress(ServiceError, OSError):
            return self._bench.kafka.keeps_status(topic, self._names.connector)
        return False

    def count_newcomers(self, samples: Sequence[Sample]) -> None:
        """Counts connections that came while the connector ran and are there without it: they are others', too."""
        sink = self._bench.sink(self._sink)
        if sink.capabilities.others is None:
            return
        pooled = any(own_count(each.pool_clients, each.signs, OTHER_POOL_CLIENTS) for each in samples)
        deadline = time.monotonic() + CLOSING_SECONDS
        with suppress(ServiceError, OSError):
            while True:
                seen = sink.read(self._names.target)
                count, sign = (seen.pool_clients, OTHER_POOL_CLIENTS) if pooled else (seen.backends, OTHER_CONNECTIONS)
                self.unattributed = own_count(count, seen.signs, sign)
                if not self.unattributed or time.monotonic() > deadline:
                    return
                time.sleep(0.2)

    def connections(self, samples: Sequence[Sample], limit: int | None, *, alone: bool = False) -> Connections:
        """The most connections of the trial's own, as far as they can be told from those of others.

        `alone`: all that came are its own, also those that it has left open.
        """
        others = 0 if alone else self.unattributed or 0
        clients, servers = (None, None) if others else connection_peaks(samples)
        return Connections(clients_peak=clients, server_peak=servers, server_limit=limit, others=others)
