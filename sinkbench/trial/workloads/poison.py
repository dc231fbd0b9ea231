"""Bad records: what a topic may hold that a sink cannot take."""

from __future__ import annotations

import json
import random
import string

from sinkbench.plan.faults import Poison

__all__ = ["RUN", "poison"]

RUN = "poison"
"""The `bench.run` of bad records that have one: they are none of the load's."""
# Elasticsearch takes 32,766 bytes as one word, and a B-tree of PostgreSQL 2,704, after compression.
_TOO_LONG = 40_000


def poison(records: Poison, number: int) -> bytes:
    """The bad record of that number: alike to a good one in its members, and in size unless that is what is bad."""
    station = {"id": "9414290", "name": "San Francisco", "lat": "37.8063", "lon": "-122.4659"}
    level = {"t": "2026-01-31 17:06", "v": "1.234", "s": "0.043", "f": "1,0,0,0", "q": "p"}
    if records == "nul":
        station["name"] = "San\0Francisco"
    elif records == "wrong type":
        station["lat"], level["t"] = "north", "yesterday"
    elif records == "too large":
        station["id"] = "".join(random.Random(number).choices(string.ascii_letters + string.digits, k=_TOO_LONG))
    document = {"metadata": station, "data": [level], "bench": {"run": RUN, "number": number}}
    text = json.dumps(document).encode()
    return text[: len(text) // 2] if records == "not json" else text
