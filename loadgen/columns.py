"""The contents of a load's records as columns, computed without making the records."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loadgen.forms import DOCUMENT, wording_of
from loadgen.records import gauge_offsets_mm, gauges, level_text
from loadgen.tide import Tide, load_stations

Table = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Columns:
    """Records as a star schema: each row of `records` refers to a row of every other table. `level` is in mm."""

    records: Table
    gauges: Table
    rounds: Table
    levels: Table


def columns_of(count: int, keys: int, first_t: str) -> Columns:
    every = load_stations()
    stations = every[: min(keys, len(every))]
    rows = gauges(stations, keys)
    tide = Tide(stations, first_t)
    rounds = -(-count // keys)
    seq = np.arange(count, dtype=np.int64)
    gauge, turn = seq % keys, seq // keys
    station = np.array([index for _, index, _ in rows])
    offset = gauge_offsets_mm([number for _, _, number in rows])
    level = tide.levels_mm(0, rounds)[turn, station[gauge]] + offset[gauge]
    drawn = np.unique(level)
    wording = wording_of(DOCUMENT)
    readings = [json.loads('{"v": "' + level_text(mm, '"}', wording)) for mm in drawn.tolist()]
    places = [stations[index] for _, index, _ in rows]
    return Columns(
        records={"seq": seq, "gauge": gauge, "round": turn, "level": level},
        gauges={
            "gauge": np.arange(keys),
            "id": _texts([name for name, _, _ in rows]),
            "name": _texts([place.name for place in places]),
            "lat": _texts([place.lat for place in places]),
            "lon": _texts([place.lon for place in places]),
            "location": _texts([f"{place.lat},{place.lon}" for place in places]),
        },
        rounds={"round": np.arange(rounds), "t": _texts(tide.times(0, rounds))},
        levels={"level": drawn, **{name: _texts([each[name] for each in readings]) for name in ("v", "s", "f", "q")}},
    )


def _texts(values: list[str]) -> npt.NDArray[Any]:
    return np.array(values, dtype=object)
