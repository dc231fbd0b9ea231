"""Makes unique records: NOAA water-level responses as ASCII JSON, with the benchmark's member.

As a document (`loadgen.forms` has the other forms) a record is

    {"metadata": {"id": "9414290", "name": "San Francisco", "lat": "37.8063", "lon": "-122.4659", "location": "..."},
     "data": [{"t": "2026-01-31 17:06", "v": "1.234", "s": "0.043", "f": "1,0,0,0", "q": "p"}],
     "bench": {"run": "...", "seq": 123456, "due_us": 1769879160000000, "sent_us": 1769879160000123, "pad": "...",
               "sum": "0badcafe"}}

It is one f-string of parts prepared for each key, level and batch, which took the least CPU time of the ways
measured (bytes with %, a numpy byte matrix of fixed columns, json.dumps). So is the canonical text of its checksum
(`loadgen.checksum`), of which the CRC-32 up to the time is known for each level."""

import json
import time
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from loadgen.checksum import DIGITS, canonical
from loadgen.errors import OptionsError
from loadgen.forms import Wording, added_bytes
from loadgen.options import Load
from loadgen.tide import Station, Tide, load_stations, times

Message = dict[str, object]
"""A record for produce_batch: {"key": str or bytes or None, "value": str or bytes}; a tombstone's value is None."""
Whole = npt.NDArray[np.int64]
Table = dict[str, npt.NDArray[Any]]


class Maker(Protocol):
    """Makes the records of one load."""

    mean_bytes: int
    """Of a value, about."""
    largest_bytes: int
    """The most that a value and its key have together."""

    def longest_batch(self, seq: int) -> int:
        """Returns the maximum `count` of `batch` from `seq` on, at least 1."""

    def batch(self, seq: int, count: int, due_us: int | Sequence[int], sent_us: int) -> list[Message]:
        """Makes the records `seq` to `seq + count - 1`, where `count` is at most `longest_batch(seq)`.

        Times are in microseconds since the epoch; `due_us` is one number if all were due at once."""


LARGEST_BATCH = 500
"""Maximum records per call. They share one sent_us, so this also limits its resolution."""

POOL_BYTES = 4 << 20
TIME_BYTES = len("2026-01-31 17:06")
SOME_TIME_US = 10**15  # as many digits as from the year 2001 to 2286
PAD_ALPHABET = bytes(code for code in range(0x21, 0x7F) if chr(code) not in '"\\')
MOST_OFFSET_MM = 20
ROUNDS_AT_ONCE, BATCHES_AT_ONCE = 256, 40


class _Gauges:
    """The gauges of a load: the first at a station has its id, others "<id>-<k>".

    Their level is the station's tide with a constant offset of at most `MOST_OFFSET_MM`."""

    def __init__(self, keys: int) -> None:
        every = load_stations()
        # With fewer keys than stations, the levels of the others are not needed.
        self.stations = every[: min(keys, len(every))]
        turns, self.station = np.divmod(np.arange(keys), len(self.stations))
        self.offset_mm = (turns * 7 + MOST_OFFSET_MM) % (2 * MOST_OFFSET_MM + 1) - MOST_OFFSET_MM
        self.places = [self.stations[index] for index in self.station.tolist()]
        pairs = zip(self.places, turns.tolist(), strict=True)
        self.ids = [f"{place.id}-{turn + 1}" if turn else place.id for place, turn in pairs]


def key_names(keys: int) -> list[str]:
    return _Gauges(keys).ids


class RecordMaker:
    """Makes the records of one load: `seq` has key number `seq % keys` and that gauge's level number `seq // keys`.

    Padding is cut consecutively from 4 MiB of 92 random characters (6.5 bits a byte), which repeat at other places."""

    def __init__(self, load: Load) -> None:
        """Prepares the parts of all records. Raises OptionsError if `record_bytes` is too small for the longest one."""
        self._keys, self._record_bytes = load.keys, load.record_bytes
        self._wording = to = Wording(load.form)
        gauges = _Gauges(load.keys)
        self._tide = Tide(gauges.stations)
        # One batch longer than the keys, so that a batch is one slice even where the keys start again.
        turns = np.arange(load.keys + LARGEST_BATCH) % load.keys
        heads = [to.head(_metadata(place, id=name)) for name, place in zip(gauges.ids, gauges.places, strict=True)]
        self._ids, self._heads = _texts(gauges.ids)[turns], _texts(heads)[turns]
        self._head_bytes = np.array([len(head) for head in heads])[turns]
        self._station, self._offset_mm = gauges.station[turns], gauges.offset_mm[turns]
        # Canonical text from after the gauge's id to the due time, the same for all gauges of a station.
        places = [f'",{canonical(_metadata(station))[1:]}}},{{"due_us":' for station in gauges.stations]
        self._places = _texts(places)[self._station]

        self._lowest_mm = -self._tide.highest_mm - MOST_OFFSET_MM
        readings = [reading(mm) for mm in range(self._lowest_mm, -self._lowest_mm + 1)]
        after = f"{to.q}{to.run}{json.dumps(load.run)}{to.seq}"
        self._levels = [f"{v}{to.s}{s}{to.f}{f}{after}" for v, s, f in readings]
        self._level_bytes = np.array([len(text) for text in self._levels])
        self._sum_starts = [
            zlib.crc32(f'[{{"data":[{{"f":"{f}","q":"p","s":"{s}","t":"'.encode()) for _, s, f in readings
        ]
        self._sum_levels = [f'","v":"{v}"}}],"metadata":{{"id":"' for v, _, _ in readings]
        self._sum_run = f',"run":{json.dumps(load.run)},"sent_us":'
        self._first_round = self._last_round = 0
        self._round_levels: Whole = np.zeros((0, 0), dtype=np.int64)
        self._round_times: list[str] = []

        texts = (to.opening, to.v, to.due_us, to.sent_us, to.pad, to.end_of_pad, to.sum, to.end)
        constant = sum(map(len, (*texts, to.closing(SOME_TIME_US)))) + (DIGITS if to.sum else 0)
        self._fixed_bytes = constant + TIME_BYTES + 2 * len(str(SOME_TIME_US)) - added_bytes(load.form)
        longest = int(self._head_bytes.max() + self._level_bytes.max()) + self._fixed_bytes
        self.smallest_bytes = longest + len(str(load.largest_seq))
        """The smallest possible `record_bytes` of the load."""
        if load.record_bytes and load.record_bytes < self.smallest_bytes:
            raise OptionsError(
                f"record_bytes: found {load.record_bytes}; the longest record of this load needs "
                f"{self.smallest_bytes}, so give at least that, or 0 for no padding"
            )
        self.mean_bytes = (load.record_bytes or self.smallest_bytes) + added_bytes(load.form)
        self.largest_bytes = self.mean_bytes + max(map(len, gauges.ids))
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
        return self.batch_of(slice(at, at + count), seq, count, due_us, sent_us)

    def batch_of(
        self, turns: slice | Whole, seq: int, count: int, due_us: int | Sequence[int], sent_us: int
    ) -> list[Message]:
        """The same, for records whose keys have these numbers."""
        to, text = self._wording, self._levels
        opening, v, then, end = to.opening, to.v, to.due_us, f"{to.end}{to.closing(sent_us)}"
        indexes, moments = self._measured(seq, count, turns)
        ids, heads, levels = self._ids[turns].tolist(), self._heads[turns].tolist(), indexes.tolist()
        dues = [str(due_us)] * count if isinstance(due_us, int) else due_us
        pads, digits = [""] * count, [""] * count
        tail, middle = f"{to.sent_us}{sent_us}", to.sum
        if self._record_bytes:
            pads = self._pads(self._record_bytes - self._fixed_bytes - len(str(seq)) - self._head_bytes[turns]
                              - self._level_bytes[indexes])  # fmt: skip
            tail, middle = f"{tail}{to.pad}", f"{to.end_of_pad}{to.sum}"
        if to.sum:
            places = self._places[turns].tolist()
            rows = zip(moments, levels, ids, places, dues, pads, range(seq, seq + count), strict=True)
            digits = self._sums(rows, sent_us)
        return [
            {
                "key": key,
                "value": f"{opening}{head}{moment}{v}{text[level]}{number}{then}{due}{tail}{pad}{middle}{hexes}{end}",
            }
            for key, head, moment, level, number, due, pad, hexes in zip(
                ids, heads, moments, levels, range(seq, seq + count), dues, pads, digits, strict=True
            )
        ]

    def _measured(self, seq: int, count: int, turns: slice | Whole) -> tuple[Whole, list[str]]:
        """The levels of the records from `seq` on, as indexes of `_levels`, and their times."""
        first_round, last_round = seq // self._keys, (seq + count - 1) // self._keys
        if first_round < self._first_round or last_round >= self._last_round:
            rounds = ROUNDS_AT_ONCE + BATCHES_AT_ONCE * LARGEST_BATCH // self._keys
            self._first_round, self._last_round = first_round, first_round + rounds
            self._round_levels = self._tide.levels_mm(first_round, rounds)
            self._round_times = times(first_round, rounds)
        rows = np.arange(seq, seq + count) // self._keys - self._first_round
        levels = self._round_levels[rows, self._station[turns]] + self._offset_mm[turns] - self._lowest_mm
        return levels, [self._round_times[row] for row in rows.tolist()]

    def _sums(self, rows: Iterable[tuple[Any, ...]], sent_us: int) -> list[str]:
        """The checksums of records by their time, level, id, place, due time, padding and number."""
        texts, starts, crc32 = self._sum_levels, self._sum_starts, zlib.crc32
        before, after = (',"pad":"', '"') if self._record_bytes else ("", "")
        then = f'{after}{self._sum_run}{sent_us},"seq":'
        return digits_of(
            [
                crc32(f"{moment}{texts[at]}{name}{place}{due}{before}{pad}{then}{number}}}]".encode(), starts[at])
                for moment, at, name, place, due, pad, number in rows
            ]
        )

    def _pads(self, sizes: Whole) -> list[str]:
        ends = np.cumsum(sizes) + self._pool_at
        if int(ends[-1]) > POOL_BYTES:
            # A random start: from 0, the same key would get the same padding again.
            start = int(self._random.integers(0, POOL_BYTES // 4))
            ends += start - self._pool_at
            self._pool_at = start
        cuts, pool = [self._pool_at, *ends.tolist()], self._pool
        self._pool_at = cuts[-1]
        return [pool[start:end] for start, end in pairwise(cuts)]


def records_of(load: Load) -> list[bytes]:
    return made_by(RecordMaker(load), load.first_seq, load.count or 0)


def made_by(maker: Maker, first_seq: int, count: int) -> list[bytes]:
    """Makes the values of `count` records from `first_seq` on."""
    now_us = time.time_ns() // 1000
    made: list[bytes] = []
    while len(made) < count:
        seq = first_seq + len(made)
        few = min(maker.longest_batch(seq), count - len(made))
        values = [message["value"] for message in maker.batch(seq, few, now_us, now_us)]
        made += [value if isinstance(value, bytes) else str(value).encode("ascii") for value in values]
    return made


def columns_of(count: int, keys: int) -> dict[str, Table]:
    """The contents of the first `count` records as a star schema, computed without making the records.

    Each row of `records` refers to a row of `gauges`, `rounds` and `levels`. `level` is in mm."""
    found = _Gauges(keys)
    rounds = -(-count // keys)
    seq = np.arange(count, dtype=np.int64)
    gauge, turn = seq % keys, seq // keys
    level = Tide(found.stations).levels_mm(0, rounds)[turn, found.station[gauge]] + found.offset_mm[gauge]
    drawn = np.unique(level)
    metadata = [_metadata(place, id=name) for name, place in zip(found.ids, found.places, strict=True)]
    readings = [dict(zip("vsfq", (*reading(mm), "p"), strict=True)) for mm in drawn.tolist()]
    return {
        "records": {"seq": seq, "gauge": gauge, "round": turn, "level": level},
        "gauges": {"gauge": np.arange(keys), **_columns(metadata)},
        "rounds": {"round": np.arange(rounds), "t": _texts(times(0, rounds))},
        "levels": {"level": drawn, **_columns(readings)},
    }


def _columns(rows: Sequence[dict[str, str]]) -> Table:
    return {name: _texts([row[name] for row in rows]) for name in rows[0]}


def _texts(values: Sequence[str]) -> npt.NDArray[Any]:
    return np.array(values, dtype=object)


def _metadata(station: Station, **gauge: str) -> dict[str, str]:
    location = f"{station.lat},{station.lon}"
    return {**gauge, "name": station.name, "lat": station.lat, "lon": station.lon, "location": location}


def reading(mm: int) -> tuple[str, str, str]:
    """A level in mm as v, s and f. The deviation (s) and the flags (f) are invented, by a hash of the level."""
    stirred = mm * 2_654_435_761 >> 7
    return f"{mm / 1000:.3f}", f"0.{2 + stirred % 60:03d}", f"{int(stirred % 53 == 0)},0,0,0"


def digits_of(crcs: Sequence[int]) -> list[str]:
    """Formats CRC-32s as hexadecimal. One by one this would take as long as computing them."""
    digits = np.array(crcs, dtype=">u4").tobytes().hex()
    return [digits[at : at + DIGITS] for at in range(0, len(digits), DIGITS)]
