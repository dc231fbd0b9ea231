"""When Elasticsearch stored a document, and when a search would find it, without a processor that stamps it.

Every indexing operation of a shard gets the shard's next `_seq_no`. While records arrive, a thread of its own reads the
highest number of each shard: by its statistics the highest that is stored, and by a search the highest that is found.
Afterwards each document's own number tells when that was.

The search keeps the shards from going idle, as the searches of users would: an index that nobody searches for 30 s is
not refreshed at all until somebody does.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

import numpy as np

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.errors import StackError
from sinkbench.sinks.arrivals import Arrivals, SeqNoTimes

__all__ = ["SeqNoWatch"]

STORED = "indices.*.shards.*.seq_no.max_seq_no,indices.*.shards.*.routing.primary"
# A composite aggregation gives this many buckets a page; 65,536 is the most.
PAGE = 50_000
END_SECONDS = 10.0
# An index is refreshed once a second unless it is told otherwise; records found later than this are not waited for.
REFRESH_SECONDS = 3.0


class SeqNoWatch:
    """Watches one index. Its client is its own; the thread alone uses it until the watch is left."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        deadline = time.monotonic() + (0 if kind else REFRESH_SECONDS)
        while not self._is_found() and time.monotonic() < deadline:
            self._leaving.wait(self._interval_seconds)
        self._leaving.set()
        self._thread.join(END_SECONDS)

    def close(self) -> None:
        """Closes its connection."""
        self._client.close()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._leaving.is_set():
            self._look(0, self._stored)
            self._look(1, self._searchable)
            due = max(due + self._interval_seconds, time.monotonic())
            self._leaving.wait(due - time.monotonic())

    def _is_found(self) -> bool:
        """Whether a search has found all that was stored."""
        stored, found = self._highest
        return bool(stored and found) and found[-1] == stored[-1]

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
        stats: Any = self._client.indices.stats(index=self._index, metric="docs", level="shards", filter_path=STORED)
        found = [-1.0] * self._shards
        for index in stats.get("indices", {}).values():
            for number, copies in index["shards"].items():
                for copy in copies:
                    if copy["routing"]["primary"]:
                        found[int(number)] = float(copy["seq_no"]["max_seq_no"])
        return found

    def _searchable(self) -> list[float]:
        asked: list[dict[str, Any]] = []
        for shard in range(self._shards):
            asked.append({"index": self._index, "preference": f"_shards:{shard}"})
            asked.append({"size": 0, "track_total_hits": False, "aggs": {"last": {"max": {"field": "_seq_no"}}}})
        answers: Any = self._client.msearch(searches=asked, filter_path="responses.aggregations.last.value")
        return [
            -1.0 if (value := answer["aggregations"]["last"]["value"]) is None else float(value)
            for answer in answers["responses"]
        ]

    def read(self, run: str, one_in: int) -> Arrivals:
        """See `ArrivalWatch`. Raises StackError if a shard cannot be read."""
        due, stored, searchable, widths, search_widths = [], [], [], [], []
        for shard in range(self._shards):
            numbers, dues = self._documents(shard, run, one_in)
            at, width = self._seen(0, shard).at(numbers)
            found, found_width = self._seen(1, shard).at(numbers, at_once=True)
            due.append(dues)
            stored.append(at)
            widths.append(width)
            searchable.append(found)
            search_widths.append(found_width)
        return Arrivals(
            np.concatenate(due),
            np.concatenate(stored),
            SeqNoTimes.resolution_us(np.concatenate(widths)),
            np.concatenate(searchable),
            SeqNoTimes.resolution_us(np.concatenate(search_widths)),
        )

    def _seen(self, which: int, shard: int) -> SeqNoTimes:
        return SeqNoTimes(self._times_us[which], [reading[shard] for reading in self._highest[which]])

    def _documents(self, shard: int, run: str, one_in: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """`_seq_no` and `bench.due_us` of the run's documents in one shard."""
        numbers: list[int] = []
        dues: list[int] = []
        after: dict[str, Any] = {}
        while True:
            fields = ("_seq_no", "bench.due_us", "bench.seq")
            composite = {"size": PAGE, "sources": [{name: {"terms": {"field": name}}} for name in fields], **after}
            answer: Any = self._client.search(
                index=self._index,
                preference=f"_shards:{shard}",
                size=0,
                query={"term": {"bench.run": run}},
                aggs={"documents": {"composite": composite}},
            )
            if answer["_shards"]["failed"] or answer["timed_out"]:
                raise StackError(f"Elasticsearch could not read shard {shard} of {self._index} for the latency")
            found = answer["aggregations"]["documents"]
            for bucket in found["buckets"]:
                if bucket["key"]["bench.seq"] % one_in == 0:
                    numbers.append(bucket["key"]["_seq_no"])
                    dues.append(bucket["key"]["bench.due_us"])
            if "after_key" not in found or not found["buckets"]:
                return np.array(numbers, dtype=np.float64), np.array(dues, dtype=np.float64)
            after = {"after": found["after_key"]}
