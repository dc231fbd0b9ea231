"""Makes unique records: NOAA water-level responses as ASCII JSON, with the benchmark's member.

As a document (`loadgen.forms` has the other forms) a record is

    {"metadata": {"id": "9414290", "name": "San Francisco", "lat": "37.8063", "lon": "-122.4659", "location": "..."},
     "data": [{"t": "2026-01-31 17:06", "v": "1.234", "s": "0.043", "f": "1,0,0,0", "q": "p"}],
     "bench": {"run": "...", "seq": 123456, "due_us": 1769879160000000, "sent_us": 1769879160000123, "pad": "...",
               "sum": "0badcafe"}}

It is one f-string of parts prepared for each key, level and batch, which took the least CPU time of the ways
measured (bytes with %, a numpy byte matrix of fixed columns, json.dumps)."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import chain, cycle, islice, pairwise
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from loadgen.checksum import DIGITS
from loadgen.errors import OptionsError
from loadgen.forms import DOCUMENT, Wording, added_bytes, wording_of
from loadgen.options import Load
from loadgen.recordsums import RecordSums, canonical_place
from loadgen.tide import Station, Tide, load_stations

Message = dict[str, object]
"""A record for produce_batch: {"key": str or bytes or None, "value": str or bytes}; a tombstone's value is None."""


class Maker(Protocol):
    """Makes the records of one load."""

    mean_bytes: int
    largest_bytes: int

    def longest_batch(self, seq: int) -> int:
        """Returns the maximum `count` of `batch` from `seq` on, at least 1."""

    def batch(self, seq: int, count: int, due_us: int | Sequence[int], sent_us: int) -> list[Message]:
        """Makes the records `seq` to `seq + count - 1`, where `count` is at most `longest_batch(seq)`.

        Times are in microseconds since the epoch; `due_us` is one number if all were due at once.
        """


LARGEST_BATCH = 500
"""Maximum records per call. They share one sent_us, so this also limits its resolution."""

POOL_BYTES = 4 << 20
TIME_BYTES = len("2026-01-31 17:06")
MICROSECONDS_BYTES = 16  # from the year 2001 to 2286
PAD_ALPHABET = bytes(code for code in range(0x21, 0x7F) if chr(code) not in '"\\')
GAUGE_OFFSETS_MM = 41
ROUNDS_AT_ONCE, BATCHES_AT_ONCE = 256, 40


def gauges(stations: Sequence[Station], keys: int) -> list[tuple[str, int, int]]:
    """Returns (id, index of the station, number k there). The first has the station's id, others "<id>-<k>"."""
    rows = []
    for index in range(keys):
        number, station = divmod(index, len(stations))
        name = stations[station].id
        rows.append((name if number == 0 else f"{name}-{number + 1}", station, number + 1))
    return rows


def gauge_offsets_mm(numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    """Height in mm above the station's tide of its gauges with these numbers, from 1."""
    offset = (np.array(numbers, dtype=np.int64) - 1) * 7 % GAUGE_OFFSETS_MM
    return np.where(offset > GAUGE_OFFSETS_MM // 2, offset - GAUGE_OFFSETS_MM, offset)


def key_names(keys: int) -> list[str]:
    stations = load_stations()
    return [name for name, _, _ in gauges(stations[: min(keys, len(stations))], keys)]


class RecordMaker:
    """Makes the records of one load: `seq` has key number `seq % keys` and that gauge's level number `seq // keys`.

    Further gauges at a station show its tide with a constant offset of at most 20 mm. Padding is cut consecutively from
    4 MiB of random printable characters (92 of them: 6.5 bits a byte), which repeat at another place of a record.
    """

    def __init__(self, load: Load) -> None:
        """Prepares the parts of all records. Raises OptionsError if `record_bytes` is too small for the longest one."""
        every = load_stations()
        # With fewer keys than stations, the levels of the others are not needed.
        stations = every[: min(load.keys, len(every))]
        self._keys = load.keys
        self._tide = Tide(stations, load.first_t)
        # One batch longer than the keys, so that a batch is one slice even where the keys start again.
        turns = list(islice(cycle(gauges(stations, load.keys)), load.keys + LARGEST_BATCH))
        self._ids = [name for name, _, _ in turns]
        # Padding makes documents equally long; in another form they have the same padding.
        self._wording, plain = wording_of(load.form), wording_of(DOCUMENT)
        metadata = [_metadata(name, stations[station]) for name, station, _ in turns]
        self._heads, plain_heads = ([words.head(each) for each in metadata] for words in (self._wording, plain))
        self._head_bytes = np.array([len(head) for head in plain_heads])
        by_station = [canonical_place(_metadata("", station)) for station in stations]
        self._places = [by_station[station] for _, station, _ in turns]
        self._station = np.array([station for _, station, _ in turns])
        self._offset_mm = gauge_offsets_mm([number for _, _, number in turns])

        self._lowest_mm = -self._tide.highest_mm - GAUGE_OFFSETS_MM
        every_mm = range(self._lowest_mm, -self._lowest_mm + 1)
        self._levels, plain_levels = (
            [level_text(mm, f"{wording.run}{json.dumps(load.run)}{wording.seq}", wording) for mm in every_mm]
            for wording in (self._wording, plain)
        )
        self._level_bytes = np.array([len(text) for text in plain_levels])
        self._sums = RecordSums(load.run, map(_reading, every_mm)) if self._wording.sum else None
        self._first_round = self._last_round = 0
        self._round_levels = np.zeros((0, len(stations)), dtype=np.int64)
        self._round_times: list[str] = []

        self._record_bytes = load.record_bytes
        texts = (plain.v, plain.due_us, plain.sent_us, plain.pad, plain.end_of_pad, plain.sum, plain.end)
        self._fixed_bytes = TIME_BYTES + 2 * MICROSECONDS_BYTES + DIGITS + sum(map(len, texts))
        longest = int(self._head_bytes.max() + self._level_bytes.max()) + self._fixed_bytes
        self.smallest_bytes = longest + len(str(load.largest_seq))
        """The smallest possible `record_bytes` of the load."""
        if load.record_bytes and load.record_bytes < self.smallest_bytes:
            raise OptionsError(
                f"record_bytes: found {load.record_bytes}; the longest record of this load needs "
                f"{self.smallest_bytes}, so give at least that, or 0 for no padding"
            )
        self.mean_bytes = (load.record_bytes or self.smallest_bytes) + added_bytes(load.form)
        self.largest_bytes = self.mean_bytes + max(map(len, self._ids))
        self._random = np.random.default_rng()
        self._pool_at = 0
        self._pool = ""
        if load.record_bytes:
            drawn = self._random.integers(0, len(PAD_ALPHABET), POOL_BYTES, dtype=np.uint8)
            self._pool = np.frombuffer(PAD_ALPHABET, dtype=np.uint8)[drawn].tobytes().decode("ascii")

    def longest_batch(self, seq: int) -> int:
        """At most LARGEST_BATCH records, with equally long seqs."""
        room = int(10 ** len(str(seq))) - seq
        if self._record_bytes:
            room = min(room, max(1, POOL_BYTES // 2 // self._record_bytes))
        return min(LARGEST_BATCH, room)

    def batch(self, seq: int, count: int, due_us: int | Sequence[int], sent_us: int) -> list[Message]:
        """See `Maker`."""
        at = seq % self._keys
        turns = slice(at, at + count)
        levels, times = self._measured(seq, self._station[turns], self._offset_mm[turns])
        found = _Gauges(self._ids[turns], self._heads[turns], self._head_bytes[turns], self._places[turns])
        return self._messages(seq, found, levels, times, due_us, sent_us)

    def batch_of(
        self, numbers: npt.NDArray[np.int64], seq: int, due_us: int | Sequence[int], sent_us: int
    ) -> list[Message]:
        """The same, for records whose keys have these numbers."""
        levels, times = self._measured(seq, self._station[numbers], self._offset_mm[numbers])
        turns = numbers.tolist()
        ids, heads, places = ([of[turn] for turn in turns] for of in (self._ids, self._heads, self._places))
        found = _Gauges(ids, heads, self._head_bytes[numbers], places)
        return self._messages(seq, found, levels, times, due_us, sent_us)

    def _measured(
        self, seq: int, station: npt.NDArray[np.int64], offset_mm: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], list[str]]:
        """The levels of the records from `seq` on, as indexes of `_levels`, and their times."""
        count = len(station)
        first_round, last_round = seq // self._keys, (seq + count - 1) // self._keys
        if first_round < self._first_round or last_round >= self._last_round:
            self._work_out(first_round)
        row = first_round - self._first_round
        if first_round == last_round:
            levels = self._round_levels[row][station]
            times = [self._round_times[row]] * count
        else:
            rows = np.arange(seq, seq + count) // self._keys - self._first_round
            levels = self._round_levels[rows, station]
            times = [self._round_times[each] for each in rows.tolist()]
        return levels + offset_mm - self._lowest_mm, times

    def _messages(
        self,
        seq: int,
        found: _Gauges,
        levels: npt.NDArray[np.int64],
        times: Sequence[str],
        due_us: int | Sequence[int],
        sent_us: int,
    ) -> list[Message]:
        text, count, to = self._levels, len(found.ids), self._wording
        opening, v, then = to.opening, to.v, to.due_us
        dues = [str(due_us)] * count if isinstance(due_us, int) else due_us
        readings, numbers = levels.tolist(), range(seq, seq + count)
        pads = self._pads(seq, found.head_bytes, levels) if self._record_bytes else None
        sums = [""] * count
        if self._sums is not None:
            sums = self._sums.of(seq, times, readings, found.ids, found.places, dues, sent_us, pads)
        tail, end = f"{to.sent_us}{sent_us}{to.sum}", f"{to.end}{to.closing(sent_us)}"
        if pads is None:
            return [
                {"key": key, "value": f"{opening}{head}{time}{v}{text[level]}{number}{then}{due}{tail}{digits}{end}"}
                for key, head, time, level, number, due, digits in zip(
                    found.ids, found.heads, times, readings, numbers, dues, sums, strict=True
                )
            ]
        tail, middle = f"{to.sent_us}{sent_us}{to.pad}", f"{to.end_of_pad}{to.sum}"
        return [
            {
                "key": key,
                "value": f"{opening}{head}{time}{v}{text[level]}{number}{then}{due}{tail}{pad}{middle}{digits}{end}",
            }
            for key, head, time, level, number, due, pad, digits in zip(
                found.ids, found.heads, times, readings, numbers, dues, pads, sums, strict=True
            )
        ]

    def _pads(self, seq: int, head_bytes: npt.NDArray[np.int64], levels: npt.NDArray[np.int64]) -> list[str]:
        fixed = self._fixed_bytes + len(str(seq))
        pool, cuts = self._pool, self._cuts(self._record_bytes - fixed - head_bytes - self._level_bytes[levels])
        return [pool[start:end] for start, end in pairwise(cuts)]

    def _cuts(self, pads: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[int]:
        """The start of each record's padding in the pool, and the end of the last one."""
        ends = np.cumsum(pads) + self._pool_at
        if int(ends[-1]) > POOL_BYTES:
            # A random start: from 0, the same key would get the same padding again.
            start = int(self._random.integers(0, POOL_BYTES // 4))
            ends += start - self._pool_at
            self._pool_at = start
        cuts = list(chain((self._pool_at,), ends.tolist()))
        self._pool_at = cuts[-1]
        return cuts

    def _work_out(self, first_round: int) -> None:
        rounds = ROUNDS_AT_ONCE + BATCHES_AT_ONCE * LARGEST_BATCH // self._keys
        self._first_round, self._last_round = first_round, first_round + rounds
        self._round_levels = self._tide.levels_mm(first_round, rounds)
        self._round_times = self._tide.times(first_round, rounds)


def records_of(load: Load) -> list[bytes]:
    return made_by(RecordMaker(load), load.first_seq, load.count or 0)


def made_by(maker: Maker, first_seq: int, count: int) -> list[bytes]:
    """Makes the values of `count` records from `first_seq` on."""
    now_us = time.time_ns() // 1000
    made: list[bytes] = []
    while len(made) < count:
        seq = first_seq + len(made)
        few = min(maker.longest_batch(seq), count - len(made))
        made += [_bytes_of(message["value"]) for message in maker.batch(seq, few, now_us, now_us)]
    return made


def _bytes_of(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("ascii")


class _Gauges(NamedTuple):
    ids: Sequence[str]
    heads: Sequence[str]
    head_bytes: npt.NDArray[np.int64]
    places: Sequence[str]


def _metadata(name: str, station: Station) -> dict[str, str]:
    place = {"lat": station.lat, "lon": station.lon, "location": f"{station.lat},{station.lon}"}
    return {"id": name, "name": station.name, **place}


def _reading(mm: int) -> tuple[str, str, str]:
    """A level in mm as v, s and f."""
    # The samples' deviation (s) and the flags (f) are invented, by a hash of the level.
    stirred = mm * 2_654_435_761 >> 7
    return f"{mm / 1000:.3f}", f"0.{2 + stirred % 60:03d}", f"{int(stirred % 53 == 0)},0,0,0"


def level_text(mm: int, after: str, wording: Wording) -> str:
    """The middle of a record, from its level up to its quality, and `after`."""
    v, s, f = _reading(mm)
    return f"{v}{wording.s}{s}{wording.f}{f}{wording.q}{after}"
