"""Rules about nodes: replicas that are missing or not in sync, and the disks of the search cluster. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sinkbench.analysis.replication import database_replication
from sinkbench.analysis.words import counted, few_of, percent
from sinkbench.doctor.diagnosis import Found, NotSeen, Rule
from sinkbench.doctor.facts import Area, Facts
from sinkbench.errors import ReasonCode
from sinkbench.sinks.state import DataNode, SearchCluster, Target

MOST_NAMED = 3
# Connect's internal topics, by their usual names, and the topic of consumer offsets.
OF_CONNECT = ("connect-", "__consumer_offsets")
_UNITS = {"b": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4, "pb": 5}
_BYTES = re.compile(r"([0-9.]+)([kmgtp]?b)")
STAGES = {
    "flood": "every index with a shard there becomes read-only, in the middle of a trial",
    "high": "shards are moved away from there, which takes disk and network from a trial",
    "low": "no further copies are put there, so that they stay unassigned",
}


def _targets(facts: Facts) -> Iterator[tuple[SearchCluster | None, Target]]:
    """Each index in question, with its cluster if that was seen."""
    for name, state in facts.sinks.items():
        targets = {each.target for each in facts.in_question if each.sink == name and each.target is not None}
        if not targets and facts.plan is None and state.target is not None:
            targets = {state.target}
        for target in sorted(targets, key=lambda each: each.name):
            if target.shards is not None:
                yield state.cluster, target


def _fix(cluster: SearchCluster, target: Target, replicas: int) -> str:
    if target.index is None:
        return f"set number_of_replicas to {replicas} in {target.name}"
    body = f"""-H 'Content-Type: application/json' -d '{{"index.number_of_replicas": {replicas}}}'"""
    return f"{cluster.curl} -X PUT {cluster.address}/{target.index}/_settings {body}"


def replicas_without_nodes(facts: Facts) -> Iterator[Found]:
    for cluster, target in _targets(facts):
        if cluster is None or not cluster.nodes or target.replicas is None:
            continue
        fit = len(cluster.nodes) - 1
        if target.replicas <= fit:
            continue
        there = "is 1 data node" if not fit else f"are {fit + 1} data nodes"
        more = target.replicas - fit
        copies = "1 copy of each shard stays" if more == 1 else f"{more} copies of each shard stay"
        yield Found(
            f"index {target.name}",
            f"number_of_replicas is {target.replicas}, and there {there}: {copies} without one",
            "a copy is never on the node of another one: the index is less durable than it says, and what waits for all"
            " copies waits until its time is up",
            _fix(cluster, target, fit),
            invalidates=target.index is None,
        )


def full_disk(facts: Facts) -> Iterator[Found | NotSeen]:
    for name, state in facts.sinks.items():
        if state.cluster is None:
            continue
        for node in state.cluster.nodes:
            if node.disk_bytes is None or node.free_bytes is None:
                yield NotSeen(f"{name} does not tell how full the disk of {node.name} is")
                continue
            stage = next(
                (each for each in STAGES if is_beyond(state.cluster.watermarks.get(each, ""), node)),
                None,
            )
            if stage is None:
                continue
            used = percent(1 - node.free_bytes / node.disk_bytes)
            yield Found(
                f"node {node.name}",
                f"{used} of its disk are used, {node.free_bytes / 1e9:.1f} GB are free: beyond the {stage} watermark,"
                f" {state.cluster.watermarks[stage]}",
                STAGES[stage],
                "free some, or move the data to a larger disk",
                invalidates=stage == "flood",
            )


def is_beyond(watermark: str, node: DataNode) -> bool:
    """Whether a node's disk is past a watermark: a used share (85%, 0.85) or free bytes (5gb); False for other text."""
    text = watermark.strip().lower()
    if not node.disk_bytes or node.free_bytes is None:
        return False
    if (found := _BYTES.fullmatch(text)) is not None:
        return node.free_bytes < float(found[1]) * float(1024 ** _UNITS[found[2]])
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return False
    return 1 - node.free_bytes / node.disk_bytes > share


def standby_not_in_sync(facts: Facts) -> Iterator[Found | NotSeen]:
    for name, state in facts.sinks.items():
        database = state.database
        if database is None:
            continue
        held = database_replication(False, database.waits_for, database.standbys)
        yield from (NotSeen(each) for each in held.unchecked)
        for broken in held.broken:
            if broken.code == ReasonCode.STANDBY_NOT_IN_SYNC:
                yield Found(
                    name,
                    broken.found,
                    "a commit that waits for a standby waits until it is there: nothing is stored, and such a trial is"
                    " invalid",
                    f"{broken.fix}, or take it out of synchronous_standby_names",
                    invalidates=True,
                )


def cluster_not_green(facts: Facts) -> Iterator[Found | NotSeen]:
    for name, state in facts.sinks.items():
        cluster = state.cluster
        if cluster is None:
            continue
        if cluster.status is None:
            yield NotSeen(f"{name} does not tell whether it is green")
        elif cluster.status != "green":
            yield Found(
                name,
                f"it is {cluster.status}: {counted(cluster.unassigned, 'shard')} or copies are on no node, and"
                f" {cluster.moving} on their way",
                "shards that come back or move take disk and network from a trial; one whose own index is not green is"
                " invalid",
                f"{cluster.curl} '{cluster.address}/_cluster/allocation/explain' says why",
                invalidates=cluster.status == "red",
            )


def copies_not_in_sync(facts: Facts) -> Iterator[Found]:
    topics: dict[int, list[str]] = {}
    for topic, brokers in sorted(facts.behind.items(), key=lambda each: (not each[0].startswith(OF_CONNECT), each[0])):
        for broker in brokers:
            topics.setdefault(broker, []).append(topic)
    for broker, names in sorted(topics.items()):
        of_connect = any(each.startswith(OF_CONNECT) for each in names)
        yield Found(
            f"broker {broker}",
            f"its copies of {counted(len(names), 'topic')} are missing, or not in sync:"
            f" {few_of(names[:MOST_NAMED], len(names))}",
            "what Connect keeps, and what is acknowledged by all, is on fewer brokers than it says; a trial whose topic"
            " is not in sync is invalid",
            "start the broker, or wait until it has caught up",
            # Other users' topics may be on brokers that a trial's topic is not on.
            invalidates=of_connect or not facts.shared,
        )


RULES = (
    Rule("replicas-without-nodes", (Area.CLUSTER,), replicas_without_nodes),
    Rule("full-disk", (Area.CLUSTER,), full_disk),
    Rule("standby-not-in-sync", (Area.DATABASE,), standby_not_in_sync),
    Rule("cluster-not-green", (Area.CLUSTER,), cluster_not_green),
    Rule("copies-not-in-sync", (Area.KAFKA,), copies_not_in_sync),
)
