"""Checksums of NOAA's records, from prepared parts of their canonical text. Tested against `loadgen.checksum`.

Up to "bench", a record's canonical text is

    [{"data":[{"f":"1,0,0,0","q":"p","s":"0.043","t":"2026-01-31 17:06","v":"1.234"}],"metadata":{...}},

of which the CRC-32 up to the time is known for each level."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

import numpy as np

from loadgen.checksum import DIGITS


def canonical_place(metadata: Mapping[str, str]) -> str:
    """Canonical text from after the gauge's id to the due time, the same for all gauges of a station."""
    place = {name: value for name, value in metadata.items() if name != "id"}
    return f'",{json.dumps(place, sort_keys=True, separators=(",", ":"))[1:]}}},{{"due_us":'


class RecordSums:
    def __init__(self, run: str, readings: Iterable[tuple[str, str, str]]) -> None:
        self._run = f'"run":{json.dumps(run)}'
        texts = [
            (f'[{{"data":[{{"f":"{f}","q":"p","s":"{s}","t":"', f'","v":"{v}"}}],"metadata":{{"id":"')
            for v, s, f in readings
        ]
        self._starts = [zlib.crc32(start.encode()) for start, _ in texts]
        self._levels = [level for _, level in texts]

    def of(
        self,
        seq: int,
        times: Iterable[str],
        levels: Sequence[int],
        ids: Iterable[str],
        places: Iterable[str],
        dues: Iterable[object],
        sent_us: int,
        pads: Sequence[str] | None,
    ) -> list[str]:
        """Returns the checksums of the records from `seq` on; `levels` are indexes of the readings."""
        texts, starts, crc32 = self._levels, self._starts, zlib.crc32
        numbers = range(seq, seq + len(levels))
        each = zip(times, levels, ids, places, dues, numbers, pads or repeat(""), strict=False)
        if pads is None:
            then = f',{self._run},"sent_us":{sent_us},"seq":'
            crcs = [
                crc32(f"{time}{texts[level]}{name}{place}{due}{then}{number}}}]".encode(), starts[level])
                for time, level, name, place, due, number, _ in each
            ]
        else:
            pad_is, then = ',"pad":"', f'",{self._run},"sent_us":{sent_us},"seq":'
            crcs = [
                crc32(f"{time}{texts[level]}{name}{place}{due}{pad_is}{pad}{then}{number}}}]".encode(), starts[level])
                for time, level, name, place, due, number, pad in each
            ]
        return digits_of(crcs)


def digits_of(crcs: Sequence[int]) -> list[str]:
    """Formats CRC-32s as hexadecimal. One by one this would take as long as computing them."""
    digits = np.array(crcs, dtype=">u4").tobytes().hex()
    return [digits[at : at + DIGITS] for at in range(0, len(digits), DIGITS)]
