"""Indices: shards and copies against data nodes, refreshes, and the disks that they are on. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sinkbench.analysis.words import percent
from sinkbench.doctor.diagnosis import Change, Found, NotSeen, Rule
from sinkbench.doctor.facts import Area, Facts
from sinkbench.sinks.state import DataNode, SearchCluster, Target

__all__ = ["RULES", "is_beyond"]

REPLICAS, REFRESH = "index.number_of_replicas", "index.refresh_interval"
# A refresh makes what was written visible, as a segment of its own that is merged later.
OFTEN_SECONDS = 5.0
_UNITS = {"b": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4, "pb": 5}
_BYTES = re.compile(r"([0-9.]+)([kmgtp]?b)")
# The last one makes indices read-only.
STAGES = {
    "flood": "every index with a shard there becomes read-only, in the middle of a trial",
    "high": "shards are moved away from there, which takes disk and network from a trial",
    "low": "no further copies are put there, so that they stay unassigned",
}


def _targets(facts: Facts) -> Iterator[tuple[str, SearchCluster | None, Target]]:
    """The sink of each index in question, its cluster if that was seen, and the index."""
    for name, state in facts.sinks.items():
        targets = {each.target for each in facts.in_question if each.sink == name and each.target is not None}
        if not targets and facts.plan is None and state.target is not None:
            targets = {state.target}
        for target in sorted(targets, key=lambda each: each.name):
            if target.shards is not None:
                yield name, state.cluster, target


def _mend(cluster: SearchCluster | None, target: Target, setting: str, value: str) -> str:
    if target.index is None:
        return f"set {setting.removeprefix('index.')} to {value} in {target.name}"
    curl, where = ("curl", "ELASTICSEARCH") if cluster is None else (cluster.curl, cluster.address)
    body = f"""-H 'Content-Type: application/json' -d '{{"{setting}": {value}}}'"""
    return f"{curl} -X PUT {where}/{target.index}/_settings {body}"


def few_shards(facts: Facts) -> Iterator[Found]:
    for _, cluster, target in _targets(facts):
        if cluster is None or target.shards is None:
            continue
        nodes, copies = len(cluster.nodes), target.shards * (1 + min(target.replicas or 0, len(cluster.nodes) - 1))
        if not nodes:
            continue
        if copies < nodes:
            without = "1 of these has none" if nodes - copies == 1 else f"{nodes - copies} of these have none"
            what = f"{copies} shards and copies on {nodes} data nodes, so that {without}"
        elif copies % nodes:
            what = f"{copies} shards and copies are no multiple of {nodes} data nodes: some index more than others"
        else:
            continue
        yield Found(
            f"index {target.name}",
            what,
            "the node with most shards sets the pace; further shards than that only cost requests",
            f"make the index with a multiple of {nodes} shards: number_of_shards cannot be changed later",
        )


def refresh_interval(facts: Facts) -> Iterator[Found]:
    for name, cluster, target in _targets(facts):
        seconds = target.refresh_seconds
        if seconds is None or not 0 <= seconds < OFTEN_SECONDS:
            continue
        yield Found(
            f"index {target.name}",
            f"somebody has set refresh_interval to {seconds:g} s",
            "each refresh writes a segment that must be merged later; by default an index that nobody searches is not"
            " refreshed at all",
            _mend(cluster, target, REFRESH, "null"),
            change=None if target.index is None else Change(name, target.index, REFRESH, None),
        )


def replicas_without_nodes(facts: Facts) -> Iterator[Found]:
    for name, cluster, target in _targets(facts):
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
            _mend(cluster, target, REPLICAS, str(fit)),
            spoils=target.index is None,
            change=None if target.index is None else Change(name, target.index, REPLICAS, str(fit)),
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
                spoils=stage == "flood",
            )


def is_beyond(watermark: str, node: DataNode) -> bool:
    """Whether a node's disk is fuller than a watermark: a share that is used (85%, 0.85), or bytes that are free (5gb).

    False of a watermark that is none.
    """
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


RULES = (
    Rule("few-shards", (Area.CLUSTER,), few_shards),
    Rule("refresh-interval", (), refresh_interval),
    Rule("replicas-without-nodes", (Area.CLUSTER,), replicas_without_nodes),
    Rule("full-disk", (Area.CLUSTER,), full_disk),
)
