"""When Elasticsearch stored a document, and when a search would find it, by its `_seq_no`. The searches of the watch
also keep shards from going idle: an index that is not searched for 30 s is not refreshed."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.elasticsearch.client import buckets_of, highest_numbers
from sinkbench.sinks.values import Arrivals, Numbers

END_SECONDS = 10.0
FIELDS = ("_seq_no", "bench.due_us", "bench.seq")
# An index is refreshed once a second by default; records that are found later than this are not waited for.
REFRESH_SECONDS = 3.0


class SeqNoTimes:
    """Times of one shard's operations, from readings of its highest sequence number. Numbers begin at 0. Operation s
    happened between the last reading below s and the first that reached s."""

    def __init__(self, times_us: Sequence[float], highest: Sequence[float]) -> None:
        """`highest` are the readings at `times_us`, in order; -1 for an empty shard, and never falling."""
        self._times = np.asarray(times_us, dtype=np.float64)
        self._highest = np.maximum.accumulate(np.asarray(highest, dtype=np.float64)) if len(highest) else np.empty(0)

    def at(self, numbers: npt.ArrayLike, *, at_once: bool = False) -> tuple[Numbers, Numbers]:
        """When the operations with these numbers happened, and the distance of the two readings around each, in
        microseconds. Both are NaN outside the readings. With `at_once`, as in a refresh, all operations between two
        readings happened at one moment, so the middle is the best estimate; otherwise they are spread evenly."""
        wanted = np.asarray(numbers, dtype=np.float64)
        times = np.full(wanted.shape, np.nan)
        widths = np.full(wanted.shape, np.nan)
        after = np.searchsorted(self._highest, wanted, side="left")
        known = (after > 0) & (after < self._highest.size)
        later, earlier = after[known], after[known] - 1
        begin, width = self._times[earlier], self._times[later] - self._times[earlier]
        share = (wanted[known] - self._highest[earlier]) / (self._highest[later] - self._highest[earlier])
        times[known] = begin + width * (0.5 if at_once else share)
        widths[known] = width
        return times, widths

    @staticmethod
    def resolution_us(widths: Numbers) -> float:
        """Half the distance of the readings around a record, for 95 % of the records; NaN if there are none."""
        known = widths[np.isfinite(widths)]
        return float(np.quantile(known, 0.95)) / 2 if known.size else float("nan")


def highest_found(answers: Sequence[Mapping[str, Any]]) -> list[float]:
    """The highest `_seq_no` in each shard's answer; -1 if it is empty. Raises LookupError if a shard did not answer."""
    values = [answer["aggregations"]["last"]["value"] for answer in answers]
    return [-1.0 if value is None else float(value) for value in values]


@maps_exceptions(ApiError, TransportError)
class SeqNoWatch:
    """Watches one index. Its client is used by the thread alone, and after that by the thread that leaves the watch."""

    def __init__(self, client: Elasticsearch, index: str, shards: int, interval_seconds: float) -> None:
        self._client = client
        self.close = client.close
        self._index = index
        self._shards = shards
        self._interval_seconds = interval_seconds
        self._times_us: tuple[list[float], list[float]] = ([], [])
        self._highest: tuple[list[list[float]], list[list[float]]] = ([], [])
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="arrivals", daemon=True)

    def __enter__(self) -> "SeqNoWatch":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *ended: object) -> None:
        self._leaving.set()
        self._thread.join(END_SECONDS)
        if kind or self._thread.is_alive():
            return
        # Records after the thread's last reading would have no time, and a stored record is found a refresh later.
        deadline = time.monotonic() + REFRESH_SECONDS
        while True:
            self._look_at_both()
            stored, found = self._highest
            if (stored and found and found[-1] == stored[-1]) or time.monotonic() >= deadline:
                return
            time.sleep(self._interval_seconds)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._leaving.is_set():
            self._look_at_both()
            due = max(due + self._interval_seconds, time.monotonic())
            self._leaving.wait(due - time.monotonic())

    def _look_at_both(self) -> None:
        """Takes a reading of each kind; a failed one leaves a gap, in which times are less precise."""
        for which, read in enumerate((self._stored, self._searchable)):
            before = time.time_ns()
            with suppress(ApiError, TransportError, LookupError):
                found = read()
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
        # With its status, each search has an answer, in the order of the shards; without it, a failed one is left out.
        path = "responses.status,responses.aggregations.last.value"
        answers: Any = self._client.msearch(searches=asked, filter_path=path)
        return highest_found(answers["responses"])

    def read(self, run: str, one_in: int) -> Arrivals:
        """See `ArrivalWatch`. Raises StackError if a shard cannot be read."""
        shards = []
        for shard in range(self._shards):
            what = f"shard {shard} of {self._index} for the latency"
            pages = buckets_of(self._client, self._index, run, FIELDS, what, preference=f"_shards:{shard}")
            keys = [bucket["key"] for page in pages for bucket in page if bucket["key"]["bench.seq"] % one_in == 0]
            numbers, due = (np.array([key[field] for key in keys], dtype=np.float64) for field in FIELDS[:2])
            shards.append((due, *self._seen(0, shard).at(numbers), *self._seen(1, shard).at(numbers, at_once=True)))
        due, stored, widths, found, found_widths = (np.concatenate(column) for column in zip(*shards, strict=True))
        resolution_us = SeqNoTimes.resolution_us
        return Arrivals(due, stored, resolution_us(widths), found, resolution_us(found_widths))

    def _seen(self, which: int, shard: int) -> SeqNoTimes:
        return SeqNoTimes(self._times_us[which], [reading[shard] for reading in self._highest[which]])
