"""Bad records, which a topic may contain and a sink cannot store."""

from __future__ import annotations

import json
import random
import string

from sinkbench.plan.faults import Poison

RUN = "poison"
"""The `bench.run` of bad records, which are not part of the load."""
# Elasticsearch's limit for a term is 32,766 bytes, that of a PostgreSQL B-tree 2,704 after compression.
_TOO_LONG = 40_000


def poison(records: Poison, number: int) -> bytes:
    """Returns a bad record by number, like a good one in its members, and in its size unless that is what is bad."""
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
