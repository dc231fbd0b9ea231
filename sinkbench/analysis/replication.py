"""What the services themselves report of copies: they are in sync, work is spread evenly, and how many nodes have a
record, in memory or on disk, when it counts as stored."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from sinkbench.analysis.words import counted, few_of, significant
from sinkbench.errors import ReasonCode

STARTED, RELOCATING, UNASSIGNED = "STARTED", "RELOCATING", "UNASSIGNED"
_IN_SYNC = ("sync", "quorum")
# FIRST 2 (a, b, c), ANY 1 (a, b), 2 (a, b), or a plain list: one is waited for.
_WAITED_FOR = re.compile(r"\s*(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(", re.IGNORECASE)

Partition: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...]]
"""A partition's leader (below 0: none), its replicas, and its in-sync replicas."""


@dataclass(frozen=True)
class Broken:
    """A violated condition: a code for programs, what was found and what to do, and the figures in that by name."""

    code: ReasonCode
    found: str
    fix: str
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return f"{self.found}; {self.fix}"


@dataclass(frozen=True)
class ReplicationState:
    """The result of one check of a service; None is unknown. `copies` is on how many nodes an acknowledged record
    is, `asked` on how many it should be; `alone` is a single node without copies."""

    broken: tuple[Broken, ...] = ()
    unchecked: tuple[str, ...] = ()
    copies: int | None = None
    asked: int | None = None
    alone: bool = False


@dataclass(frozen=True)
class Standby:
    """A server that follows a PostgreSQL server, from `pg_stat_replication`; None is a value we may not see."""

    name: str | None
    state: str | None
    sync_state: str | None
    applies: bool = True


@dataclass(frozen=True)
class ShardCopy:
    """A copy of a shard, from `_cat/shards`: its node, or why it has none."""

    shard: int
    primary: bool
    state: str
    node: str | None = None
    why: str = ""


def waited_for(names: str) -> int:
    """How many standbys a commit waits for by `synchronous_standby_names`; 0 if that is empty."""
    if not names.strip():
        return 0
    found = _WAITED_FOR.match(names)
    return int(found[1]) if found is not None else 1


def database_replication(follows: bool, names: str, standbys: Sequence[Standby]) -> ReplicationState:
    """Whether a PostgreSQL server accepts writes (`follows`: `pg_is_in_recovery()`) and has its standbys in sync."""
    if follows:
        text = (
            "the PostgreSQL that is written to is a standby (pg_is_in_recovery): primary and standby may have changed"
            " places"
        )
        fix = "promote it, or point the stack and the connectors at the primary"
        return ReplicationState((Broken(ReasonCode.WRITES_TO_STANDBY, text, fix),))
    if not (needed := waited_for(names)):
        return ReplicationState(copies=1, asked=1, alone=True)
    if any(each.state is None or each.sync_state is None for each in standbys):
        why = "this user does not see pg_stat_replication; GRANT pg_read_all_stats to it"
        return ReplicationState(unchecked=(f"whether PostgreSQL's standbys are in sync: {why}",), asked=1 + needed)
    listed = [each for each in standbys if each.sync_state != "async"]
    good = [each for each in listed if each.sync_state in _IN_SYNC and each.state == "streaming" and each.applies]
    behind = [each for each in listed if each.state != "streaming"]
    if len(good) >= needed and not behind:
        return ReplicationState(copies=1 + needed, asked=1 + needed)
    told = [
        f"{each.name} is {each.sync_state} and {each.state}" + ("" if each.applies else ", and applies nothing")
        for each in (behind or standbys)
    ]
    there = few_of(told) if told else "none is connected"
    text = (
        f"{len(good)} of {counted(needed, 'standby')} that PostgreSQL waits for"
        f" (synchronous_standby_names {names}) {'is' if len(good) == 1 else 'are'} in sync and streaming: {there}"
    )
    fix = "start the standby, and look at its log"
    if not behind and not all(each.applies for each in standbys):
        fix = "SELECT pg_wal_replay_resume() on the standby if it is paused there, and look at its log"
    figures = {"in_sync": float(len(good)), "waited_for": float(needed), "standbys": float(len(standbys))}
    broken = Broken(ReasonCode.STANDBY_NOT_IN_SYNC, text, fix, figures)
    return ReplicationState((broken,), copies=1 + len(good), asked=1 + needed)


def index_replication(copies: Sequence[ShardCopy], nodes: Collection[str] | None) -> ReplicationState:
    """Whether all copies of an index's shards, including unassigned ones, are assigned and not moving, and spread
    evenly over the data nodes allowed for them; if `nodes` is None, `unchecked` says so."""
    broken = []
    asked = max(Counter(each.shard for each in copies).values(), default=0)
    there = [each for each in copies if each.state in (STARTED, RELOCATING)]
    if missing := [each for each in copies if each.state == UNASSIGNED]:
        status = "red" if any(each.primary for each in missing) else "yellow"
        told = few_of([_in_words(each) for each in missing])
        few = nodes is not None and len(nodes) < asked
        fits = f"there {'is' if len(nodes or ()) == 1 else 'are'} {counted(len(nodes or ()), 'data node')}"
        why = f", since {asked} copies of each are asked for and {fits}" if few else ""
        fewer = f"set number_of_replicas to {max(len(nodes or ()) - 1, 0)}, or add a data node"
        fix = fewer if few else "GET _cluster/allocation/explain says why"
        text = f"the index is {status}: {told} on no node{why}"
        broken.append(Broken(ReasonCode.INDEX_NOT_GREEN, text, fix, {"missing": float(len(missing))}))
    if moving := [each for each in copies if each.state not in (STARTED, UNASSIGNED)]:
        told = few_of([f"{_in_words(each)} {each.state.lower()}" for each in moving])
        text = f"shards of the index move: {told}"
        fix = "wait until GET _cat/recovery?active_only shows none"
        broken.append(Broken(ReasonCode.SHARDS_MOVING, text, fix, {"moving": float(len(moving))}))
    unchecked: tuple[str, ...] = ()
    if nodes is None:
        why = "it is not shown which may hold them, or its own settings keep it from some"
        unchecked = (f"whether the shards of the index are spread over the nodes: {why}",)
    elif not broken and (uneven := _uneven_primaries(there, nodes)) is not None:
        broken.append(uneven)
    by_shard = Counter({each.shard: 0 for each in copies})
    by_shard.update(each.shard for each in there)
    least = min(by_shard.values(), default=0)
    alone = asked == 1 and nodes is not None and len(nodes) == 1 and not broken
    return ReplicationState(tuple(broken), unchecked, copies=least, asked=asked, alone=alone)


def _uneven_primaries(copies: Sequence[ShardCopy], nodes: Collection[str]) -> Broken | None:
    primaries = [each.node or "" for each in copies if each.primary]
    wanted, used = min(len(primaries), len(nodes)), Counter(primaries)
    if len(used) >= wanted:
        return None
    where = ", ".join(f"{name} {count}" for name, count in sorted(used.items()))
    text = (
        f"the {counted(len(primaries), 'primary shard')} of the index lie on {len(used)} of"
        f" {len(nodes)} data nodes ({where})"
    )
    fix = "set index.routing.allocation.total_shards_per_node, or move one by POST _cluster/reroute"
    return Broken(ReasonCode.SHARDS_UNEVEN, text, fix, {"nodes_used": float(len(used)), "nodes": float(len(nodes))})


def _in_words(copy: ShardCopy) -> str:
    told = copy.node or copy.why
    return f"{'primary' if copy.primary else 'copy'} of shard {copy.shard}" + (f" ({told})" if told else "")


def topic_replication(brokers: Collection[int], partitions: Mapping[int, Partition]) -> ReplicationState:
    """Whether all replicas of a topic are in sync, and its leaders are spread evenly over the available `brokers`."""
    behind = {
        number: sorted(set(copies) - set(in_sync))
        for number, (leader, copies, in_sync) in sorted(partitions.items())
        if leader < 0 or set(copies) - set(in_sync)
    }
    broken = []
    if behind:
        named = [
            f"{number} (no leader)"
            if partitions[number][0] < 0
            else f"{number} (without {'broker' if len(lacks) == 1 else 'brokers'} {', '.join(map(str, lacks))})"
            for number, lacks in behind.items()
        ]
        noun = "partition" if len(behind) == 1 else "partitions"
        text = (
            f"{len(behind)} of {len(partitions)} partitions of the topic have not all of their copies in sync: {noun}"
            f" {few_of(named)}"
        )
        fix = "start the broker, or wait until it has caught up"
        broken.append(Broken(ReasonCode.PARTITIONS_NOT_IN_SYNC, text, fix, {"partitions": float(len(behind))}))
    leads = Counter(dict.fromkeys(brokers, 0))
    leads.update(leader for leader, _, _ in partitions.values() if leader >= 0)
    if not behind and leads and max(leads.values()) - min(leads.values()) > 1:
        told = ", ".join(f"broker {name} leads {count}" for name, count in sorted(leads.items()))
        text = f"the {len(partitions)} partitions of the topic are led unevenly: {told}"
        fix = "run kafka-leader-election.sh --election-type preferred, and give all racks equally many brokers"
        figures = {"most": float(max(leads.values())), "least": float(min(leads.values()))}
        broken.append(Broken(ReasonCode.LEADERS_UNEVEN, text, fix, figures))
    in_sync = min((len(in_sync) for _, _, in_sync in partitions.values()), default=None)
    asked = max((len(copies) for _, copies, _ in partitions.values()), default=None)
    alone = len(leads) == 1 and asked == 1 and not broken
    return ReplicationState(tuple(broken), copies=in_sync, asked=asked, alone=alone)


# After an asynchronous commit the WAL writer flushes within at most N of its rounds.
# Source: https://www.postgresql.org/docs/current/wal-async-commit.html
ROUNDS_BEHIND = 3
_TIME = re.compile(r"(\d+)(us|ms|s|min|h|d)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


@dataclass(frozen=True)
class Promise:
    """What a sink guarantees for a record that it reports as stored; None is unknown.

    `nodes` of `most_nodes` that are configured have it; `flushed` tells which have it on disk, `behind_seconds` how
    late the disk may be if none has. `how` is the setting responsible, `unsure` why nothing survives a crash."""

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
    `sync_seconds` (`index.translog.sync_interval`). Unassigned copies are not written: `as_replicated` counts them."""
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
    nodes = f"1 to {promise.most_nodes} nodes" if promise.nodes is None else counted(promise.nodes, "node")
    where = {"all": "disk", "one": "1 on disk", "none": "memory"}[promise.flushed]
    how = f"{significant(promise.behind_seconds)} s" if promise.behind_seconds is not None else promise.how
    return f"{nodes}, {where}" + (f" ({how})" if how else "")


def acks_in_words(acks: str, held: ReplicationState | None) -> str:
    """What Kafka has when it acknowledges a record, as `acks all, 3 of 3 in sync`."""
    if acks != "all" or held is None or held.copies is None or held.asked is None:
        return f"acks {acks}"
    return f"acks all, {held.copies} of {held.asked} in sync"


def _times(count: int, text: str | None) -> float | None:
    """`count` times a PostgreSQL duration, in seconds; None if the text is not one."""
    found = _TIME.fullmatch(text or "")
    return None if found is None else round(count * int(found[1]) * _SECONDS[found[2]], 6)
