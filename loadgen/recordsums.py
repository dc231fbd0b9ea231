"""The checksums of noaa's records, from parts of their canonical text that were prepared for each key and level.

A property holds them to `loadgen.checksum`, which says what they are of. A record's canonical text is, up to "bench",

    [{"data":[{"f":"1,0,0,0","q":"p","s":"0.043","t":"2026-01-31 17:06","v":"1.234"}],"metadata":{...}},

of which the CRC-32 up to the time is known for each level.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence

from loadgen.checksum import in_digits

__all__ = ["RecordSums", "canonical_station"]


def canonical_station(metadata: Mapping[str, str]) -> str:
    """A record's canonical text after its level, with the station's members, up to its due time."""
    station = json.dumps(metadata, sort_keys=True, separators=(",", ":"))
    return f'"}}],"metadata":{station}}},{{"due_us":'


class RecordSums:
    """Checksums of the records of one load."""

    def __init__(self, run: str, readings: Iterable[tuple[str, str, str]]) -> None:
        """`readings` are what the records of each level have as v, s and f."""
        self._run = f'"run":{json.dumps(run)}'
        texts = [(f'[{{"data":[{{"f":"{f}","q":"p","s":"{s}","t":"', f'","v":"{v}') for v, s, f in readings]
        self._starts = [zlib.crc32(start.encode()) for start, _ in texts]
        self._levels = [level for _, level in texts]

    def of(
        self,
        seq: int,
        times: Iterable[str],
        levels: Sequence[int],
        stations: Iterable[str],
        dues: Iterable[object],
        sent_us: int,
        pads: Iterable[str] | None,
    ) -> list[str]:
        """The checksums of the records from `seq` on.

        Args:
            times, levels, dues: of each record; a level by its place among the readings.
            stations: the `canonical_station` of each.
            pads: the padding of each; None if they have none.
        """
        texts, starts, crc32 = self._levels, self._starts, zlib.crc32
        numbers = range(seq, seq + len(levels))
        if pads is None:
            then = f',{self._run},"sent_us":{sent_us},"seq":'
            return [
                in_digits(crc32(f"{time}{texts[level]}{station}{due}{then}{number}}}]".encode(), starts[level]))
                for time, level, station, due, number in zip(times, levels, stations, dues, numbers, strict=False)
            ]
        pad_is, then = ',"pad":"', f'",{self._run},"sent_us":{sent_us},"seq":'
        return [
            f"{crc32(f'{time}{texts[level]}{station}{due}{pad_is}{pad}{then}{number}}}]'.encode(), starts[level]):08x}"
            for time, level, station, due, pad, number in zip(
                times, levels, stations, dues, pads, numbers, strict=False
            )
        ]
