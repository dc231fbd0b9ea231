"""Bad records: what a topic may hold that a sink cannot take."""

from __future__ import annotations

import json

from sinkbench.plan.faults import Poison

__all__ = ["RUN", "poison"]

RUN = "poison"
"""The `bench.run` of bad records that have one: they are none of the load's."""


def poison(records: Poison, number: int) -> bytes:
    """The bad record of that number: alike in size and members to a good one."""
    station = {"id": "9414290", "name": "San Francisco", "lat": "37.8063", "lon": "-122.4659"}
    level = {"t": "2026-01-31 17:06", "v": "1.234", "s": "0.043", "f": "1,0,0,0", "q": "p"}
    if records == "nul":
        station["name"] = "San\0Francisco"
    elif records == "wrong type":
        station["lat"], level["t"] = "north", "yesterday"
    document = {"metadata": station, "data": [level], "bench": {"run": RUN, "number": number}}
    text = json.dumps(document).encode()
    return text[: len(text) // 2] if records == "not json" else text
