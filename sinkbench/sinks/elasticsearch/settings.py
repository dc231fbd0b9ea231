"""Settings of an index, and what a plan can set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sinkbench.analysis.durability import index_promise
from sinkbench.analysis.settable import Given, Settable, duration, one_of, whole
from sinkbench.sinks.elasticsearch.asked import seconds_of
from sinkbench.sinks.reading import SinkSettings

TRANSLOG = "index.translog.durability"
SYNC_INTERVAL = "index.translog.sync_interval"
SETTABLE = Settable(
    {
        "index.number_of_shards": whole(1, 1024),
        "index.number_of_replicas": whole(0, 100),
        TRANSLOG: one_of("request", "async"),
        SYNC_INTERVAL: duration(),
        "index.refresh_interval": duration("-1"),
    },
    # The settings are part of the trial's own index.
    shared=True,
)
"""What can be set when an index is created."""
# What an index promises for acknowledged documents, and what else its speed depends on.
DURABILITY = (TRANSLOG, SYNC_INTERVAL, "index.number_of_replicas")
TUNING = ("index.number_of_shards", "index.refresh_interval")


class IndexSettings:
    """What a plan sets for the next index. It is refused only when the index is created, and removed with it."""

    def __init__(self) -> None:
        self.given: Mapping[str, str] = {}

    def refusal(self, given: Given) -> str | None:
        return None

    def apply(self, given: Given) -> None:
        self.given = given.get("elasticsearch", {})

    def revert(self) -> list[str]:
        self.given = {}
        return []


def settings_of(index: Mapping[str, Mapping[str, Any]]) -> SinkSettings:
    """An index's settings in Elasticsearch's answer: its own, flat, and the defaults of others."""
    known = {**index.get("defaults", {}), **index.get("settings", {})}
    # A default comes as REQUEST, a user's setting as request.
    found = {name: None if known.get(name) is None else str(known[name]).lower() for name in (*DURABILITY, *TUNING)}
    durability, tuning = ({name: found[name] for name in names} for names in (DURABILITY, TUNING))
    return SinkSettings(durability, tuning, index_promise(durability, seconds_of(found[SYNC_INTERVAL])))
