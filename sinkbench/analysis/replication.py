"""What must be true while a trial runs, by the services' own reports: copies are in sync, work is spread evenly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sinkbench.analysis.words import counted, few_of
from sinkbench.errors import ReasonCode

MOST_NAMED = 3
STARTED, RELOCATING, UNASSIGNED = "STARTED", "RELOCATING", "UNASSIGNED"
_IN_SYNC = ("sync", "quorum")
# FIRST 2 (a, b, c), ANY 1 (a, b), 2 (a, b), or a plain list: one is waited for.
_WAITED_FOR = re.compile(r"\s*(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(", re.IGNORECASE)

Partition: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...]]
"""A partition's leader (below 0: none), its replicas, and its in-sync replicas."""


@dataclass(frozen=True)
class Broken:
    """A violated condition: a code for programs, what was found and what to do for a person, the figures in these by
    name."""

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
    """Whether a PostgreSQL server accepts writes (`follows`: `pg_is_in_recovery()`) and has its synchronous
    standbys."""
    if follows:
        text = (
            "the PostgreSQL that is written to is a standby (pg_is_in_recovery): primary and standby may have changed"
            " places"
        )
        fix = "promote it, or point the stack and the connectors at the primary"
        return ReplicationState((Broken(ReasonCode.WRITES_TO_STANDBY, text, fix),))
    needed = waited_for(names)
    if not needed:
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
    there = few_of(told[:MOST_NAMED], len(told)) if told else "none is connected"
    text = (
        f"{len(good)} of {counted(needed, 'standby')} that PostgreSQL waits for"
        f" (synchronous_standby_names {names}) {'is' if len(good) == 1 else 'are'} in sync and streaming: {there}"
    )
    fix = "start the standby, and look at its log"
    if not behind and not all(each.applies for each in standbys):
        fix = "SELECT pg_wal_replay_resume() on the standby if it is paused there, and look at its log"
    figures = {"in_sync": float(len(good)), "waited_for": float(needed), "standbys": float(len(standbys))}
    return ReplicationState(
        (Broken(ReasonCode.STANDBY_NOT_IN_SYNC, text, fix, figures),), copies=1 + len(good), asked=1 + needed
    )


def most_copies(copies: Sequence[ShardCopy]) -> int:
    """How many copies each shard should have, including the primary; 0 without shards."""
    return max(Counter(each.shard for each in copies).values(), default=0)


def index_replication(copies: Sequence[ShardCopy], nodes: Collection[str] | None) -> ReplicationState:
    """Whether all copies of an index's shards, including unassigned ones, are assigned and not moving, and spread
    evenly over the data nodes allowed for them; if `nodes` is None, `unchecked` says so."""
    broken = []
    asked = most_copies(copies)
    there = [each for each in copies if each.state in (STARTED, RELOCATING)]
    missing = [each for each in copies if each.state == UNASSIGNED]
    if missing:
        status = "red" if any(each.primary for each in missing) else "yellow"
        told = few_of([_in_words(each) for each in missing[:MOST_NAMED]], len(missing))
        few = nodes is not None and len(nodes) < asked
        fits = f"there {'is' if len(nodes or ()) == 1 else 'are'} {counted(len(nodes or ()), 'data node')}"
        why = f", since {asked} copies of each are asked for and {fits}" if few else ""
        fewer = f"set number_of_replicas to {max(len(nodes or ()) - 1, 0)}, or add a data node"
        fix = fewer if few else "GET _cluster/allocation/explain says why"
        text = f"the index is {status}: {told} on no node{why}"
        broken.append(Broken(ReasonCode.INDEX_NOT_GREEN, text, fix, {"missing": float(len(missing))}))
    if moving := [each for each in copies if each.state not in (STARTED, UNASSIGNED)]:
        told = few_of([f"{_in_words(each)} {each.state.lower()}" for each in moving[:MOST_NAMED]], len(moving))
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
        named = [f"{number} ({_lacking(partitions[number], lacks)})" for number, lacks in behind.items()]
        noun = "partition" if len(behind) == 1 else "partitions"
        text = (
            f"{len(behind)} of {len(partitions)} partitions of the topic have not all of their copies in sync: {noun}"
            f" {few_of(named[:MOST_NAMED], len(named))}"
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
    return ReplicationState(
        tuple(broken), copies=in_sync, asked=asked, alone=len(leads) == 1 and asked == 1 and not broken
    )


def _lacking(partition: Partition, lacks: Sequence[int]) -> str:
    if partition[0] < 0:
        return "no leader"
    return f"without {'broker' if len(lacks) == 1 else 'brokers'} {', '.join(map(str, lacks))}"
