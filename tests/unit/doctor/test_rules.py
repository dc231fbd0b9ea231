"""Each rule shows what it is there for, with the figure, and is silent where nothing is the matter."""

from typing import Any

import pytest

from sinkbench.analysis.replication import Standby
from sinkbench.doctor.facts import Area, Connector, Facts, Machine, Topic
from sinkbench.doctor.rules import RULES
from sinkbench.doctor.rules.nodes import is_beyond
from sinkbench.sinks import DataNode, SinkState
from tests.support.doctorfacts import cluster, database, diagnosis, facts, found, index, jdbc, pooler, search

EVEN = Topic("tides", (100,) * 24)
POOLED = "jdbc:postgresql://127.0.0.1:16432/bench?prepareThreshold=0"


def topics(*counts: int, **more: Any) -> dict[str, Topic]:
    return {"tides": Topic("tides", counts, **more)}


def postgres(**given: Any) -> dict[str, SinkState]:
    return {"postgres": SinkState(database=database(**given), pooler=pooler())}


def through_pooler(**given: Any) -> dict[str, SinkState]:
    return {"postgres": SinkState(database=database(), pooler=pooler(**given))}


def elasticsearch(nodes: int = 1, /, **of_index: Any) -> dict[str, SinkState]:
    return {"elasticsearch": SinkState(cluster=cluster(nodes), target=index(**of_index))}


def of_plan(*connectors: Connector, **given: Any) -> Facts:
    return facts(**{"plan": "mine", "partitions": 24, "keys": 10_000, "connectors": connectors, **given})


def running(*connectors: Connector, **given: Any) -> Facts:
    return facts(connectors=connectors, **given)


def in_cluster(**given: Any) -> Facts:
    return facts(sinks={"elasticsearch": SinkState(cluster=cluster(**given))})


# By rule, facts that show it, and what its finding says; of those that invalidate a race, and of those worth knowing.
INVALID = [
    ("race-refused", of_plan(refusals=("mine.yaml:3: too many",)), "mine.yaml:3: too many"),
    ("failed-tasks", running(jdbc(failed=2, cause="no connection")), "2 of 3 tasks FAILED: no connection"),
    ("failed-tasks", running(jdbc(state="FAILED")), "the connector FAILED"),
    ("uneven-tasks", running(jdbc(tasks=6, placement={"a": 2, "b": 4, "c": 0})), "over 3 workers (a 2, b 4, c 0)"),
    ("other-connectors", of_plan(jdbc(tasks=4)), "unbalances those of others: 4 is no multiple of 3"),
    ("other-connectors", running(jdbc(), search(name="tides_5eeded_001", trials=True)), "it runs 3 tasks on the same"),
    ("more-tasks-than-partitions", running(jdbc(tasks=6), topics=topics(5, 5, 5)), "6 tasks read 3 partitions, so"),
    ("few-keys", of_plan(jdbc(tasks=24, planned=True), keys=5), "about 5 of 24 partitions get records"),
    ("empty-partitions", running(jdbc(), topics=topics(100, 0, 100)), "2 of the 3 partitions that it reads"),
    (
        "too-many-connections",
        of_plan(jdbc(tasks=24, planned=True, config={"connection.pool.min_size": "5"}), sinks=postgres(used=7)),
        "24 tasks open 120 connections, and the database has 90 for them: 100 at most, less 3 that are reserved and 7",
    ),
    (
        "too-many-connections",
        running(jdbc(tasks=60), jdbc(name="b", tasks=60), sinks=postgres(used=97, by_jdbc=97)),
        "120 tasks open 120 connections, and the database has 97",
    ),
    (
        "small-pool",
        of_plan(jdbc(tasks=9, planned=True, pooled=True, url=POOLED), sinks=through_pooler(most_clients=10, clients=4)),
        "9 tasks open 9 connections to the pooler, which takes 10, less 4 of others",
    ),
    (
        "small-pool",
        facts(sinks={"postgres": SinkState(database=database(used=60), pooler=pooler(pool=50, servers=5))}),
        "its pool of 50 connections is larger than the 42",
    ),
    ("read-only-database", running(jdbc(read_only=True)), "127.0.0.1:15432 takes no writes"),
    (
        "prepared-statements",
        running(jdbc(pooled=True, url=POOLED.partition("?")[0])),
        "through a pooler in transaction mode, and prepareThreshold is 5, the default",
    ),
    (
        "replicas-without-nodes",
        of_plan(search(planned=True, target=index(index=None, replicas=1))),
        "number_of_replicas is 1, and there is 1 data node: 1 copy of each shard stays without one",
    ),
    ("full-disk", in_cluster(free_bytes=4 * 10**9), "beyond the flood watermark"),
    (
        "standby-not-in-sync",
        facts(sinks=postgres(waits_for="FIRST 1 (b)", standbys=(Standby("b", "catchup", "potential"),))),
        "0 of 1 standby that PostgreSQL waits for (synchronous_standby_names FIRST 1 (b)) are in sync and streaming: b",
    ),
    ("cluster-not-green", in_cluster(told={"status": "red", "unassigned": 2}), "it is red: 2 shards or copies"),
    (
        "copies-not-in-sync",
        facts(behind={"mine": (3,), "connect-status": (3,), "connect-configs": (3,), "yours": (3,)}),
        "its copies of 4 topics are missing, or not in sync: connect-configs, connect-status, mine and 1 more",
    ),
    ("no-dead-letter-queue", of_plan(jdbc(planned=True, config={"errors.tolerance": "all"})), "tolerance is all"),
    (
        "durability-differs",
        of_plan(jdbc(planned=True), search(planned=True, target=index(unsafe=("translog is async",)))),
        "translog is async; postgres has what it acknowledges on its disk",
    ),
    (
        "little-memory",
        facts(machine=Machine(available_bytes=5 * 10**9, needed_bytes=7 * 10**9)),
        "5.0 GB of memory are available, and the stack takes about 7.0 GB",
    ),
    ("little-disk", facts(machine=Machine(free_bytes=10**9, least_free_bytes=4 * 10**9)), "1.0 GB free where the"),
]
KNOWING = [
    ("uneven-tasks", running(jdbc(tasks=4)), "4 tasks are no multiple of 3 workers"),
    ("other-connectors", running(jdbc(), search(tasks=4)), "jdbc 3, bulk 4; these unbalance one another's: 4, no"),
    ("few-keys", of_plan(jdbc(tasks=3, planned=True), keys=200), "the fullest gets about 1.9 times the mean"),
    ("empty-partitions", running(jdbc(), topics=topics(100, 0, 100, 100, 100, 100)), "5 of the 6 partitions"),
    ("skewed-keys", running(jdbc(), topics=topics(900, 50, 50)), "the fullest of 3 partitions has 2.7 times the mean"),
    (
        "too-many-connections",
        of_plan(jdbc(tasks=6, planned=True, config={"connection.pool.max_size": "32"})),
        "6 tasks open 6 to 192 connections",
    ),
    ("small-pool", of_plan(jdbc(tasks=12, planned=True, pooled=True, url=POOLED)), "12 tasks share 10 connections"),
    ("full-disk", in_cluster(free_bytes=12 * 10**9), "88 % of its disk are used, 12.0 GB are free: beyond the low"),
    ("cluster-not-green", in_cluster(told={"status": "yellow", "unassigned": 1}), "it is yellow: 1 shard or copies"),
    ("copies-not-in-sync", facts(shared=True, behind={"yours": (2,)}), "its copies of 1 topic are missing"),
    ("request-a-record", running(jdbc(config={"batch.size": "1"})), "batch.size is 1"),
    ("durability-differs", facts(sinks={**elasticsearch(2, replicas=1), **postgres()}), "elasticsearch 2, postgres 1"),
]
SHOWN = [*((*each, True) for each in INVALID), *((*each, False) for each in KNOWING)]


@pytest.mark.parametrize(
    ("code", "seen", "said", "invalidates"), SHOWN, ids=[f"{n}-{each[0]}" for n, each in enumerate(SHOWN)]
)
def test_a_rule_shows_what_it_is_there_for(code: str, seen: Facts, said: str, invalidates: bool) -> None:
    (finding,) = found(seen, code)
    assert said in f"{finding.subject}: {finding.what}"
    assert finding.invalidates is invalidates
    assert finding.why
    assert finding.fix


def test_every_rule_is_shown_by_some_facts() -> None:
    assert {code for code, *_ in SHOWN} == {rule.code for rule in RULES}


def test_findings_that_invalidate_a_race_come_first() -> None:
    seen = of_plan(jdbc(planned=True, config={"batch.size": "1", "errors.tolerance": "all"}))
    assert [each.found.invalidates for each in diagnosis(seen).findings] == [True, False]


# A stack on which much runs, or a plan that asks for much, and nothing is the matter.
QUIET = [
    facts(),
    facts(connectors=(jdbc(tasks=6),), topics={"tides": EVEN}, sinks=postgres(used=6, by_jdbc=6)),
    of_plan(
        jdbc(tasks=12, planned=True),
        search(tasks=24, planned=True),
        jdbc(name="stopped", tasks=5, state="STOPPED", placement={}),
    ),
    of_plan(jdbc(tasks=3, planned=True, url="jdbc:postgresql://a,b/bench?targetServerType=primary")),
    facts(connectors=(jdbc(config={"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dlq"}),)),
]


@pytest.mark.parametrize("seen", QUIET)
def test_rules_are_silent_where_nothing_is_the_matter(seen: Facts) -> None:
    said = diagnosis(seen)
    assert (said.findings, said.unseen) == ((), {})
    assert set(said.checked) == {rule.code for rule in RULES}


@pytest.mark.parametrize("area", list(Area))
def test_what_was_not_seen_is_named_and_never_taken_for_well(area: Area) -> None:
    said = diagnosis(facts(plan="mine", partitions=24, keys=10_000, unseen={area: "it does not answer"}))
    assert "it does not answer" in said.unseen.values() or area is Area.DISK
    assert not set(said.unseen) & set(said.checked)
    assert {rule.code for rule in RULES if area in rule.needs} <= set(said.unseen)


def test_what_a_rule_lacks_of_a_single_connector_is_named_such_as_topics_that_it_names_by_a_pattern() -> None:
    seen = facts(connectors=(jdbc(config={"topics": "", "topics.regex": "tides.*"}),))
    codes = {"more-tasks-than-partitions", "empty-partitions", "skewed-keys"}
    unknown = jdbc(read_only=None, config={"connector.class": "a.Sink"})
    assert {"read-only-database", "too-many-connections"} <= set(diagnosis(facts(connectors=(unknown,))).unseen)
    assert diagnosis(seen).unseen == dict.fromkeys(codes, "jdbc names its topics by a pattern")


def test_a_command_that_asks_a_secured_service_says_how_to_be_let_in() -> None:
    curl = "curl --cacert /ca.pem -u bench"
    for code, connectors in (
        ("failed-tasks", (jdbc(tasks=3, failed=1),)),
        ("other-connectors", (jdbc(), jdbc(name="b"))),
        ("other-connectors", (jdbc(trials=True), jdbc(name="b"))),
    ):
        (each,) = found(facts(connectors=connectors, worker_curl=curl), code)
        assert f"{curl} -X P" in each.fix, code
    red = SinkState(cluster=cluster(told={"status": "red", "curl": curl}))
    (each,) = found(facts(sinks={"elasticsearch": red}), "cluster-not-green")
    assert each.fix.startswith(f"{curl} ")


@pytest.mark.parametrize(
    ("watermark", "free", "beyond"),
    [("85%", 14, True), ("85%", 16, False), ("0.85", 14, True), ("20b", 14, True), ("10b", 14, False), ("?", 1, False)],
)
def test_a_watermark_is_a_share_that_is_used_or_bytes_that_are_free(watermark: str, free: int, beyond: bool) -> None:
    assert is_beyond(watermark, DataNode("a", 100, free)) is beyond


def test_standbys_in_sync_are_nothing_to_tell_and_hidden_ones_are_not_seen() -> None:
    good = facts(sinks=postgres(waits_for="*", standbys=(Standby("a", "streaming", "sync"),)))
    assert found(good, "standby-not-in-sync") == []
    hidden = diagnosis(facts(sinks=postgres(waits_for="*", standbys=(Standby(None, None, None),))))
    assert "GRANT pg_read_all_stats" in hidden.unseen["standby-not-in-sync"]


def test_a_cluster_that_does_not_tell_its_health_is_not_called_green() -> None:
    seen = diagnosis(facts(sinks={"elasticsearch": SinkState(cluster=cluster(told={"status": None}))}))
    assert seen.unseen["cluster-not-green"] == "elasticsearch does not tell whether it is green"
