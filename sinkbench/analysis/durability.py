"""How many nodes have a record, in memory or on disk, when it counts as stored; from the services' settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sinkbench.analysis.replication import ReplicationState, waited_for

# After an asynchronous commit the WAL writer flushes within at most N of its rounds.
# Source: https://www.postgresql.org/docs/current/wal-async-commit.html
ROUNDS_BEHIND = 3
_TIME = re.compile(r"(\d+)(us|ms|s|min|h|d)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


@dataclass(frozen=True)
class Promise:
    """What a sink guarantees for a record that it reports as stored; None is unknown.

    `nodes` of `most_nodes` that are configured have it; `flushed` tells which have it on disk, `behind_seconds` how
    late the disk may be if none has. `how` is the setting responsible, `unsure` why nothing survives a crash.
    """

    nodes: int | None
    flushed: Literal["all", "one", "none"]
    most_nodes: int = 1
    behind_seconds: float | None = None
    how: str = ""
    unsure: str = ""

    @property
    def on_disk(self) -> int | None:
        if self.unsure:
            return 0
        return {"all": self.nodes, "one": 1, "none": 0}[self.flushed]


def database_promise(settings: Mapping[str, str | None], *, unlogged: bool = False) -> Promise | None:
    """What PostgreSQL guarantees for a committed transaction (an UNLOGGED table is emptied after a crash and not
    replicated); None if its settings are unknown. A commit waits for standbys only if `synchronous_standby_names` is
    set, and then without a limit: N nodes have it."""
    off = ["UNLOGGED"] if unlogged else []
    off += [f"{name} off" for name in ("fsync", "full_page_writes") if settings.get(name) == "off"]
    if off:
        return Promise(1, "none", unsure=", ".join(off))
    commit, names = settings.get("synchronous_commit"), settings.get("synchronous_standby_names")
    if commit is None or names is None or settings.get("fsync") is None or settings.get("full_page_writes") is None:
        return None
    if commit == "off":
        return Promise(1, "none", behind_seconds=_times(ROUNDS_BEHIND, settings.get("wal_writer_delay")))
    standbys = 0 if commit == "local" else waited_for("" if names == "none" else names)
    nodes = 1 + standbys
    if not standbys:
        return Promise(1, "all")
    if commit == "remote_write":
        return Promise(nodes, "one", nodes, how="remote_write")
    return Promise(nodes, "all", nodes, how="applied" if commit == "remote_apply" else "")


def index_promise(settings: Mapping[str, str | None], sync_seconds: float | None) -> Promise | None:
    """What Elasticsearch guarantees for an acknowledged document; None if its settings are unknown.

    All in-sync copies have it in their translog: on disk if `index.translog.durability` is request, else flushed every
    `sync_seconds` (`index.translog.sync_interval`). Unassigned copies are not written, so `as_replicated` adds how many
    there are.
    """
    durability, replicas = (settings.get(f"index.{name}") for name in ("translog.durability", "number_of_replicas"))
    if durability is None or replicas is None or not replicas.isdecimal():
        return None
    most = 1 + int(replicas)
    nodes = 1 if most == 1 else None
    if durability == "async":
        return Promise(nodes, "none", most, behind_seconds=sync_seconds)
    return Promise(nodes, "all", most)


def as_replicated(promise: Promise, held: ReplicationState | None) -> Promise:
    if promise.nodes is not None or held is None or held.copies is None:
        return promise
    nodes = min(held.copies, promise.most_nodes)
    return replace(promise, nodes=nodes, most_nodes=nodes)


def promise_in_words(promise: Promise) -> str:
    """As `2 nodes, disk`, `1 node, memory (5 s)`, `2 nodes, 1 on disk (remote_write)` or `nothing sure (fsync off)`."""
    if promise.unsure:
        return f"nothing sure ({promise.unsure})"
    if promise.nodes is None:
        nodes = f"1 to {promise.most_nodes} nodes"
    else:
        nodes = "1 node" if promise.nodes == 1 else f"{promise.nodes} nodes"
    where = {"all": "disk", "one": "1 on disk", "none": "memory"}[promise.flushed]
    how = f"{promise.behind_seconds:g} s" if promise.behind_seconds is not None else promise.how
    return f"{nodes}, {where}" + (f" ({how})" if how else "")


def acks_in_words(acks: str, held: ReplicationState | None) -> str:
    """What Kafka has when it acknowledges a record, as `acks all, 3 of 3 in sync`."""
    if acks != "all" or held is None or held.copies is None or held.asked is None:
        return f"acks {acks}"
    return f"acks all, {held.copies} of {held.asked} in sync"


def acks_nodes(acks: str, held: ReplicationState | None) -> int | None:
    """How many brokers have a record when Kafka acknowledges it; None if not observed."""
    if acks != "all":
        return int(acks)
    return None if held is None else held.copies


def _times(count: int, text: str | None) -> float | None:
    """`count` times a PostgreSQL duration, in seconds; None if the text is not one."""
    found = _TIME.fullmatch(text or "")
    return None if found is None else round(count * int(found[1]) * _SECONDS[found[2]], 6)
