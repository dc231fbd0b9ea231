"""Makes records: UTF-8 JSON, one NOAA water-level response each, plus what the benchmark needs, none like another.

    {"metadata": {"id": "9414290", "name": "San Francisco", "lat": "37.8063", "lon": "-122.4659", "location": "..."},
     "data": [{"t": "2026-01-31 17:06", "v": "1.234", "s": "0.043", "f": "1,0,0,0", "q": "p"}],
     "bench": {"run": "...", "seq": 123456, "due_us": 1769879160000000, "sent_us": 1769879160000123, "pad": "..."}}

The text before each value is put together once for each key, each level and each batch, so a record is one f-string of
ready parts; of the ways measured (bytes with %, a numpy byte matrix of fixed columns, json.dumps) this took least CPU.
All of it is ASCII, so that a record's length in characters is its length in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np

from loadgen.errors import OptionsError
from loadgen.options import Load
from loadgen.tide import Station, Tide, load_stations

__all__ = ["LARGEST_BATCH", "Message", "RecordMaker", "gauges"]

Message = dict[str, object]
"""A record as produce_batch takes it: {"key": str, "value": str}."""

LARGEST_BATCH = 500
"""The most records that one call makes. It is also the resolution of sent_us: records of a call share a reading."""

POOL_BYTES = 4 << 20
TIME_BYTES = len("2026-01-31 17:06")
MICROSECONDS_BYTES = 16  # from the year 2001 to 2286
PAD_OPENING = ', "pad": "'
PAD_ALPHABET = bytes(code for code in range(0x21, 0x7F) if chr(code) not in '"\\')
GAUGE_OFFSETS_MM = 41
ROUNDS_AT_ONCE, BATCHES_AT_ONCE = 256, 40


def gauges(stations: Sequence[Station], keys: int) -> list[tuple[str, int, int]]:
    """The first `keys` gauges: (id, index of its station, number of the gauge at that station, from 1).

    The first gauge of each station bears the station's own id, the k-th the id "<station>-<k>".
    """
    rows = []
    for index in range(keys):
        number, station = divmod(index, len(stations))
        name = stations[station].id
        rows.append((name if number == 0 else f"{name}-{number + 1}", station, number + 1))
    return rows


class RecordMaker:
    """Makes the records of one load, by their position in it.

    Record `seq` belongs to key number `seq % keys` and is that gauge's level number `seq // keys`. Further gauges at a
    station show its tide with a constant offset of at most 20 mm.

    Padding is cut from a pool of 4 MiB of random printable characters (92 of them: 6.5 bits in each byte), one record
    after the other, without overlap: it repeats, at another place of the record, after 4 MiB of padding.
    """

    def __init__(self, load: Load) -> None:
        """Prepares the parts of all records of `load`.

        Raises:
            OptionsError: `record_bytes` is less than the longest record needs.
        """
        every = load_stations()
        # Fewer keys than stations: the first of them, so that no level is worked out in vain.
        stations = every[: min(load.keys, len(every))]
        self._keys = load.keys
        self._tide = Tide(stations, load.first_t)
        rows = gauges(stations, load.keys)
        heads = [_head(name, stations[station]) for name, station, _ in rows]

        # Longer than the keys by one batch, so that a batch is always one slice, also where the keys start again.
        turns = range(load.keys + LARGEST_BATCH)
        self._ids = [rows[turn % load.keys][0] for turn in turns]
        self._heads = [heads[turn % load.keys] for turn in turns]
        self._head_bytes = np.array([len(head) for head in self._heads])
        self._station = np.array([rows[turn % load.keys][1] for turn in turns])
        offset = np.array([(rows[turn % load.keys][2] - 1) * 7 % GAUGE_OFFSETS_MM for turn in turns])
        self._offset_mm = np.where(offset > GAUGE_OFFSETS_MM // 2, offset - GAUGE_OFFSETS_MM, offset)

        self._lowest_mm = -self._tide.highest_mm - GAUGE_OFFSETS_MM
        after = '"}], "bench": {"run": ' + json.dumps(load.run) + ', "seq": '
        self._levels = [_level(mm, after) for mm in range(self._lowest_mm, -self._lowest_mm + 1)]
        self._level_bytes = np.array([len(text) for text in self._levels])
        self._first_round = self._last_round = 0
        self._round_levels = np.zeros((0, len(stations)), dtype=np.int64)
        self._round_times: list[str] = []

        self._record_bytes = load.record_bytes
        texts = len('", "v": "') + len(', "due_us": ') + len(', "sent_us": ') + len(PAD_OPENING) + len('"}}')
        self._fixed_bytes = TIME_BYTES + 2 * MICROSECONDS_BYTES + texts
        longest = int(self._head_bytes.max() + self._level_bytes.max()) + self._fixed_bytes
        self.smallest_bytes = longest + len(str(load.largest_seq))
        """The least `record_bytes` that every record of the load can have."""
        if load.record_bytes and load.record_bytes < self.smallest_bytes:
            raise OptionsError(
                f"record_bytes: found {load.record_bytes}; the longest record of this load needs "
                f"{self.smallest_bytes}, so give at least that, or 0 for no padding"
            )
        self._random = np.random.default_rng()
        self._pool_at = 0
        self._pool = ""
        if load.record_bytes:
            drawn = self._random.integers(0, len(PAD_ALPHABET), POOL_BYTES, dtype=np.uint8)
            self._pool = np.frombuffer(PAD_ALPHABET, dtype=np.uint8)[drawn].tobytes().decode("ascii")

    def longest_batch(self, seq: int) -> int:
        """How many records from `seq` one call of `batch` can make: at most LARGEST_BATCH, all with as many digits."""
        room = int(10 ** len(str(seq))) - seq
        if self._record_bytes:
            room = min(room, max(1, POOL_BYTES // 2 // self._record_bytes))
        return min(LARGEST_BATCH, room)

    def batch(self, seq: int, count: int, due_us: int | Sequence[int], sent_us: int) -> list[Message]:
        """Makes the records `seq` to `seq + count - 1`.

        Args:
            seq: the first record's number.
            count: how many; at most `longest_batch(seq)`.
            due_us: when each was due, in microseconds since the epoch; one number if all were due at once.
            sent_us: when they are handed to the producer, in microseconds since the epoch.
        """
        at = seq % self._keys
        until = at + count
        first_round, last_round = seq // self._keys, (seq + count - 1) // self._keys
        if first_round < self._first_round or last_round >= self._last_round:
            self._work_out(first_round)
        row = first_round - self._first_round
        times: Sequence[str] | repeat[str]
        if first_round == last_round:
            levels = self._round_levels[row][self._station[at:until]]
            times = repeat(self._round_times[row], count)
        else:
            rows = np.arange(seq, seq + count) // self._keys - self._first_round
            levels = self._round_levels[rows, self._station[at:until]]
            times = [self._round_times[each] for each in rows.tolist()]
        levels = levels + self._offset_mm[at:until] - self._lowest_mm

        text = self._levels
        dues = repeat(str(due_us), count) if isinstance(due_us, int) else due_us
        ids, heads, numbers = self._ids[at:until], self._heads[at:until], range(seq, seq + count)
        if not self._record_bytes:
            tail = f', "sent_us": {sent_us}}}}}'
            return [
                {"key": key, "value": f'{head}{time}", "v": "{text[level]}{number}, "due_us": {due}{tail}'}
                for key, head, time, level, number, due in zip(
                    ids, heads, times, levels.tolist(), numbers, dues, strict=True
                )
            ]
        tail = f', "sent_us": {sent_us}{PAD_OPENING}'
        fixed = self._fixed_bytes + len(str(seq))
        pads = self._record_bytes - fixed - self._head_bytes[at:until] - self._level_bytes[levels]
        pool, cuts = self._pool, self._cuts(pads)
        return [
            {"key": key, "value": f'{head}{time}", "v": "{text[level]}{number}, "due_us": {due}{tail}{pool[a:b]}"}}}}'}
            for key, head, time, level, number, due, a, b in zip(
                ids, heads, times, levels.tolist(), numbers, dues, cuts, cuts[1:], strict=False
            )
        ]

    def _cuts(self, pads: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[int]:
        """Where in the pool the padding of each record starts, and after the last one, where it ends."""
        ends = np.cumsum(pads) + self._pool_at
        if int(ends[-1]) > POOL_BYTES:
            # Not at 0 each time: the same cut would then come back for the same key.
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


def _head(name: str, station: Station) -> str:
    """A record of the gauge `name` up to its time."""
    metadata = {
        "id": name,
        "name": station.name,
        "lat": station.lat,
        "lon": station.lon,
        "location": f"{station.lat},{station.lon}",
    }
    return '{"metadata": ' + json.dumps(metadata) + ', "data": [{"t": "'


def _level(mm: int, after: str) -> str:
    """A record from its level in mm up to its seq.

    The deviation of the samples (s) and the flags (f) are made up: the level's own digits, stirred, choose them.
    """
    stirred = mm * 2_654_435_761 >> 7
    sigma, flagged = 2 + stirred % 60, int(stirred % 53 == 0)
    return f'{mm / 1000:.3f}", "s": "0.{sigma:03d}", "f": "{flagged},0,0,0", "q": "p{after}'
