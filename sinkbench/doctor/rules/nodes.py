"""Nodes: what is to be on several of them, and is not. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sinkbench.analysis.replication import database_replication
from sinkbench.analysis.words import counted, few_of
from sinkbench.doctor.diagnosis import Found, NotSeen, Rule
from sinkbench.doctor.facts import Area, Facts
from sinkbench.errors import ReasonCode

__all__ = ["RULES"]

MOST_NAMED = 3
# What Connect keeps, by the names that nearly everybody gives these topics, and what groups have read.
OF_CONNECT = ("connect-", "__consumer_offsets")


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
                    f"{broken.mend}, or take it out of synchronous_standby_names",
                    spoils=True,
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
                spoils=cluster.status == "red",
            )
        fit = len(cluster.nodes) - 1
        if cluster.template_replicas is not None and cluster.nodes and cluster.template_replicas > fit:
            yield Found(
                name,
                f"an index template gives trials' indices {counted(cluster.template_replicas, 'replica')}, and there"
                f" {'is 1 data node' if not fit else f'are {fit + 1} data nodes'}",
                "an index whose file does not say number_of_replicas stays yellow, and its trials are invalid",
                f"set number_of_replicas to {fit} in the file, or in the template",
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
            # On somebody's own brokers topics of others may be on some that a trial's is not on.
            spoils=of_connect or not facts.shared,
        )


RULES = (
    Rule("standby-not-in-sync", (Area.DATABASE,), standby_not_in_sync),
    Rule("cluster-not-green", (Area.CLUSTER,), cluster_not_green),
    Rule("copies-not-in-sync", (Area.KAFKA,), copies_not_in_sync),
)
