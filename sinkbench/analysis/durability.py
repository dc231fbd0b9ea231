"""What is on how many nodes when a record counts as stored, from what the services say of their settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sinkbench.analysis.replication import ReplicationState, waited_for

# The WAL writer flushes what was committed after at most N of its rounds.
# Source: https://www.postgresql.org/docs/current/wal-async-commit.html
ROUNDS_BEHIND = 3
_TIME = re.compile(r"(\d+)(us|ms|s|min|h|d)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


@dataclass(frozen=True)
class Promise:
    """What a sink promises of a record that it calls stored.

    Attributes:
        nodes: that have it by then; None if that depends on which are there, and that was not seen.
        flushed: which of them have it on their disk, after an fsync: all, the one that was written to, or none.
        most_nodes: that are to have it.
        behind_seconds: by how much the disk may be behind, where none has it; None if that is not known.
        how: the setting that makes it so, where the rest does not tell.
        unsure: what makes nothing of this sure after a crash; empty if there is no such thing.
    """

    nodes: int | None
    flushed: Literal["all", "one", "none"]
    most_nodes: int = 1
    behind_seconds: float | None = None
    how: str = ""
    unsure: str = ""

    @property
    def on_disk(self) -> int | None:
        """How many nodes have it on their disk; None if that is not known."""
        if self.unsure:
            return 0
        return {"all": self.nodes, "one": 1, "none": 0}[self.flushed]


def database_promise(settings: Mapping[str, str | None], *, unlogged: bool = False) -> Promise | None:
    """What PostgreSQL promises of a transaction that is committed; None if it does not tell its settings.

    A commit waits for standbys only if `synchronous_standby_names` names some, and then until they answer, however long
    that takes: N nodes have it, whether they were seen or not.

    Args:
        settings: by PostgreSQL's names: `fsync`, `full_page_writes`, `synchronous_commit`, `synchronous_standby_names`
            ("none" if empty), `wal_writer_delay`.
        unlogged: whether the table is UNLOGGED: it is emptied after a crash, and no standby has it.
    """
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
    """What Elasticsearch promises of a document that it has acknowledged; None if it does not tell its settings.

    All copies that are in sync have the document in their translog by then: on their disk where
    `index.translog.durability` is request. Copies that are on no node are not asked, so how many have it is known only
    of who has looked: see `as_replicated`.

    Args:
        settings: by Elasticsearch's names.
        sync_seconds: `index.translog.sync_interval`.
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
    """A promise of as many nodes as were seen."""
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
    """What Kafka has when it acknowledges a record, as `acks all, 3 of 3 in sync`; by what was seen of the topic."""
    if acks != "all" or held is None or held.copies is None or held.asked is None:
        return f"acks {acks}"
    return f"acks all, {held.copies} of {held.asked} in sync"


def acks_nodes(acks: str, held: ReplicationState | None) -> int | None:
    """On how many brokers a record is when Kafka acknowledges it; None if that was not seen."""
    if acks != "all":
        return int(acks)
    return None if held is None else held.copies


def _times(count: int, text: str | None) -> float | None:
    """So many times a time as PostgreSQL writes it, in seconds; None if it is none."""
    found = _TIME.fullmatch(text or "")
    return None if found is None else round(count * int(found[1]) * _SECONDS[found[2]], 6)
