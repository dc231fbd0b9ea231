"""When Elasticsearch stored a document, and when a search would find it, without a processor that stamps it.

Every indexing operation of a shard gets the shard's next `_seq_no`. While records arrive, a thread of its own reads the
highest number of each shard: by its statistics the highest that is stored, and by a search the highest that is found.
Afterwards each document's own number tells when that was.

The search keeps the shards from going idle, as the searches of users would: an index that is not searched for 30 s is
not refreshed at all until it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.arrivals import Arrivals, SeqNoTimes
from sinkbench.sinks.elasticsearch.client import buckets_of, highest_numbers

__all__ = ["SeqNoWatch", "highest_found"]

END_SECONDS = 10.0
# An index is refreshed once a second unless it is told otherwise; records found later than this are not waited for.
REFRESH_SECONDS = 3.0


def highest_found(answers: Sequence[Mapping[str, Any]]) -> list[float]:
    """The highest `_seq_no` by the answer for each shard; -1 of an empty one. LookupError if a shard did not answer."""
    values = [answer["aggregations"]["last"]["value"] for answer in answers]
    return [-1.0 if value is None else float(value) for value in values]


@maps_exceptions(ApiError, TransportError)
class SeqNoWatch:
    """Watches one index. Its client is its own; the thread alone uses it, then the one that leaves the watch."""

    def __init__(self, client: Elasticsearch, index: str, shards: int, interval_seconds: float) -> None:
        """
        Args:
            client: is closed with the watch.
            index: what to watch; it is empty yet.
            shards: how many it has.
            interval_seconds: time between two readings.
        """
        self._client = client
        self._index = index
        self._shards = shards
        self._interval_seconds = interval_seconds
        self._times_us: tuple[list[float], list[float]] = ([], [])
        self._highest: tuple[list[list[float]], list[list[float]]] = ([], [])
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="arrivals", daemon=True)

    def __enter__(self) -> SeqNoWatch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *ended: object) -> None:
        self._leaving.set()
        self._thread.join(END_SECONDS)
        if kind or self._thread.is_alive():
            return
        # What came after the thread's last look would have no time; and what is stored is found a refresh later.
        deadline = time.monotonic() + REFRESH_SECONDS
        while True:
            self._look_at_both()
            if self._is_found() or time.monotonic() >= deadline:
                return
            time.sleep(self._interval_seconds)

    def close(self) -> None:
        """Closes its connection."""
        self._client.close()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._leaving.is_set():
            self._look_at_both()
            due = max(due + self._interval_seconds, time.monotonic())
            self._leaving.wait(due - time.monotonic())

    def _is_found(self) -> bool:
        """Whether a search has found all that was stored."""
        stored, found = self._highest
        return bool(stored and found) and found[-1] == stored[-1]

    def _look_at_both(self) -> None:
        self._look(0, self._stored)
        self._look(1, self._searchable)

    def _look(self, which: int, read: Any) -> None:
        """One reading; one that fails leaves a gap, and the records of that time are known less well."""
        before = time.time_ns()
        try:
            found = read()
        except (ApiError, TransportError, LookupError):
            return
        self._times_us[which].append((before + time.time_ns()) / 2000)
        self._highest[which].append(found)

    def _stored(self) -> list[float]:
        found = [-1.0] * self._shards
        for shard, highest in highest_numbers(self._client, self._index):
            found[shard] = float(highest)
        return found

    def _searchable(self) -> list[float]:
        asked: list[dict[str, Any]] = []
        for shard in range(self._shards):
            asked.append({"index": self._index, "preference": f"_shards:{shard}"})
            asked.append({"size": 0, "track_total_hits": False, "aggs": {"last": {"max": {"field": "_seq_no"}}}})
        # With its status each search has an answer, in the order of the shards; without, one that failed is left out.
        path = "responses.status,responses.aggregations.last.value"
        answers: Any = self._client.msearch(searches=asked, filter_path=path)
        return highest_found(answers["responses"])

    def read(self, run: str, one_in: int) -> Arrivals:
        """See `ArrivalWatch`. Raises StackError if a shard cannot be read."""
        shards = []
        for shard in range(self._shards):
            numbers, due = self._documents(shard, run, one_in)
            shards.append((due, *self._seen(0, shard).at(numbers), *self._seen(1, shard).at(numbers, at_once=True)))
        due, stored, widths, found, found_widths = (np.concatenate(column) for column in zip(*shards, strict=True))
        resolution_us = SeqNoTimes.resolution_us
        return Arrivals(due, stored, resolution_us(widths), found, resolution_us(found_widths))

    def _seen(self, which: int, shard: int) -> SeqNoTimes:
        return SeqNoTimes(self._times_us[which], [reading[shard] for reading in self._highest[which]])

    def _documents(self, shard: int, run: str, one_in: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """`_seq_no` and `bench.due_us` of the run's documents in one shard."""
        fields = ("_seq_no", "bench.due_us", "bench.seq")
        what = f"shard {shard} of {self._index} for the latency"
        pages = buckets_of(self._client, self._index, run, fields, what, preference=f"_shards:{shard}")
        keys = [bucket["key"] for page in pages for bucket in page if bucket["key"]["bench.seq"] % one_in == 0]
        numbers, due = (np.array([key[field] for key in keys], dtype=np.float64) for field in fields[:2])
        return numbers, due
