"""Each rule shows what it is there for and is silent else, and what a connector's configuration says of itself."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sinkbench.analysis.connectors import REFERENCE_BULK
from sinkbench.doctor.configs import Pool, leads_to, one_by_one, pool_of, sink_of
from sinkbench.doctor.diagnosis import DOCS, Area, Connector, Facts, Machine, as_values, lines, screen
from sinkbench.doctor.progress import Offsets, Progress, Reading
from sinkbench.doctor.rules import RULES
from sinkbench.doctor.rules.services import is_beyond
from sinkbench.metrics import anchor
from sinkbench.settings import CHECKOUT
from sinkbench.sinks.jdbcurl import JdbcUrl, jdbc_url
from sinkbench.sinks.values import DataNode, SinkState
from tests.support.doctorfacts import cluster, database, diagnosis, facts, found, jdbc, pooler, progress, search
from tests.support.trials import config_of

EVEN = {"tides": (100,) * 24}
REFERENCE, POLLS = {"connector.class": REFERENCE_BULK}, {"consumer.override.max.poll.records": "2000"}
POOLED = "jdbc:postgresql://127.0.0.1:16432/bench?prepareThreshold=0"


def topics(*counts: int) -> dict[str, tuple[int, ...]]:
    return {"tides": counts}


def postgres(**given: Any) -> dict[str, SinkState]:
    return {"postgres": SinkState(database=database(**given), pooler=pooler())}


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
    ("other-connectors", of_plan(jdbc(tasks=4)), "it runs 4 tasks on the same workers"),
    ("other-connectors", running(jdbc(), search(name="tides_5eeded_001", trials=True)), "it runs 3 tasks on the same"),
    ("more-tasks-than-partitions", running(jdbc(tasks=6), topics=topics(5, 5, 5)), "6 tasks read 3 partitions"),
    ("few-keys", of_plan(jdbc(tasks=24, planned=True), keys=5), "about 5 of 24 partitions get records"),
    ("empty-partitions", running(jdbc(), topics=topics(100, 0, 100)), "2 of the 3 partitions that it reads"),
    (
        "too-many-connections",
        of_plan(jdbc(tasks=24, planned=True, config={"connection.pool.min_size": "5"}), sinks=postgres(used=7)),
        "24 tasks open 120 connections, and the database has 90 for them: 100 at most, less 3 that are reserved and 7",
    ),
    (
        "small-pool",
        of_plan(
            jdbc(tasks=9, planned=True, pooled=True, url=POOLED),
            sinks={"postgres": SinkState(pooler=pooler(most_clients=10, clients=4))},
        ),
        "9 tasks open 9 connections to the pooler, which takes 10, less 4 of others",
    ),
    ("prepared-statements", running(jdbc(pooled=True, url=POOLED.partition("?")[0])), "prepareThreshold is 5"),
    ("full-disk", in_cluster(free_bytes=4 * 10**9), "beyond the flood watermark"),
    ("no-dead-letter-queue", of_plan(jdbc(planned=True, config={"errors.tolerance": "all"})), "tolerance is all"),
    (
        "durability-differs",
        of_plan(jdbc(planned=True), search(planned=True, unsafe=("translog is async",))),
        "translog is async; postgres has what it acknowledges on its disk",
    ),
    (
        "little-memory",
        facts(machine=Machine(available_bytes=5 * 10**9, needed_bytes=7 * 10**9)),
        "5.0 GB of memory are available, and the stack takes about 7.0 GB",
    ),
    ("little-disk", facts(machine=Machine(free_bytes=10**9, least_free_bytes=4 * 10**9)), "1.0 GB free where the"),
    (
        "standing-still",
        running(jdbc(progress=progress(100, 500, 100, waited=7_200.0), said="a lock (insert.mode): end it")),
        "its tasks are RUNNING, and in 2 of 3 partitions (tides-0, tides-2) nothing was committed for 66 s, and the"
        " next record has waited for 2.0 h; a log says: a lock (insert.mode): end it",
    ),
]
KNOWING = [
    ("empty-partitions", running(jdbc(), topics=topics(100, 0, 100, 100, 100, 100)), "5 of the 6 partitions"),
    (
        "too-many-connections",
        of_plan(jdbc(tasks=6, planned=True, config={"connection.pool.max_size": "32"})),
        "6 tasks open 6 to 192 connections",
    ),
    ("small-pool", of_plan(jdbc(tasks=12, planned=True, pooled=True, url=POOLED)), "12 tasks share 10 connections"),
    ("full-disk", in_cluster(free_bytes=12 * 10**9), "88 % of its disk are used, 12.0 GB are free: beyond the low"),
    ("request-a-record", running(jdbc(config={"batch.size": "1"})), "batch.size is 1"),
    (
        "batch-beyond-poll",
        of_plan(jdbc(planned=True, config={"batch.size": "2000"})),
        "batch.size is 2,000, and a poll brings at most 500 records (consumer.override.max.poll.records)",
    ),
    (
        "batch-beyond-poll",
        # Eight partitions a task, of each of which a megabyte is fetched.
        of_plan(search(planned=True, config={"camel.aggregation.size": "500"}), record_bytes=100_000.0),
        "camel.aggregation.size is 500, and a poll brings at most 84 records of 100,000 bytes"
        " (consumer.override.max.partition.fetch.bytes)",
    ),
    (
        "small-requests",
        of_plan(search(planned=True, config=REFERENCE), record_bytes=512.0),
        "its bulk requests have at most 256,000 bytes (consumer.override.max.poll.records)",
    ),
    (
        "small-requests",
        of_plan(search(planned=True, config={**REFERENCE, **POLLS, "batch.bytes": "100000"}), record_bytes=512.0),
        "its bulk requests have at most 100,000 bytes (batch.bytes)",
    ),
    (
        "lag-grows",
        running(jdbc(progress=progress(430, 430, grows=660, waited=60.0, kept=600.0))),
        "20 records/s arrive, 10 are read, 2,460 are unread; in 18 min Kafka deletes unread ones",
    ),
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
    assert [each.invalidates for each in diagnosis(seen).findings] == [True, False]


# A stack on which much runs, or a plan that asks for much, and nothing is the matter.
QUIET = [
    facts(),
    facts(connectors=(jdbc(tasks=6),), topics=EVEN, sinks=postgres(used=6, by_jdbc=6)),
    of_plan(
        jdbc(tasks=12, planned=True),
        search(tasks=24, planned=True),
        jdbc(name="stopped", tasks=5, state="STOPPED", placement={}),
    ),
    of_plan(jdbc(tasks=3, planned=True, url="jdbc:postgresql://a,b/bench?targetServerType=primary")),
    facts(connectors=(jdbc(config={"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dlq"}),)),
    # One that goes on, one that has read all, one that was seen for a moment only, and one that keeps up.
    facts(connectors=(jdbc(progress=progress(200, 300)), jdbc("b", progress=progress(1_000, grows=0)))),
    facts(connectors=(jdbc(progress=progress(100, 100, seconds=5)),)),
    facts(connectors=(jdbc(progress=progress(760, 750, grows=660)),)),
    of_plan(jdbc(planned=True, config={"batch.size": "500"}), record_bytes=550.0),
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
    codes = {"more-tasks-than-partitions", "empty-partitions"}
    unknown = jdbc(config={"connector.class": "a.Sink"})
    assert "too-many-connections" in diagnosis(facts(connectors=(unknown,))).unseen
    assert diagnosis(seen).unseen == dict.fromkeys(codes, "jdbc names its topics by a pattern")


def test_a_command_that_asks_a_secured_service_says_how_to_be_let_in() -> None:
    curl, trial = "curl --cacert /ca.pem -u bench", jdbc(trials=True)
    for code, connectors in (("failed-tasks", (jdbc(failed=1),)), ("other-connectors", (trial, jdbc(name="b")))):
        (each,) = found(facts(connectors=connectors, worker_curl=curl), code)
        assert f"{curl} -X P" in each.fix, code


@pytest.mark.parametrize(
    ("watermark", "free", "beyond"),
    [("85%", 14, True), ("85%", 16, False), ("0.85", 14, True), ("20b", 14, True), ("10b", 14, False), ("?", 1, False)],
)
def test_a_watermark_is_a_share_that_is_used_or_bytes_that_are_free(watermark: str, free: int, beyond: bool) -> None:
    assert is_beyond(watermark, DataNode("a", 100, free)) is beyond


def test_a_finding_is_printed_with_all_of_its_parts() -> None:
    seen = diagnosis(facts(connectors=(jdbc(failed=2),)))
    said = "\n".join(lines(seen))
    assert "invalidates a race: jdbc: 2 of 3 tasks FAILED" in said
    assert "\n    why: what they should read stays unread" in said
    assert "\n    fix: remove the cause" in said
    assert f"\n    {DOCS}#failed-tasks" in said
    assert f"{len(RULES)} of {len(RULES)} rules saw all that they need: 1 invalidates a race" in said
    # A program gets the same.
    found = json.loads(json.dumps(as_values(seen)))
    assert found["invalid"] is True
    assert [each["code"] for each in found["findings"]] == ["failed-tasks"]


def test_nothing_found_says_what_was_looked_at_and_what_was_not() -> None:
    *_, last, unseen = lines(diagnosis(facts(unseen={Area.DISK: "these machines belong to others"})))
    assert last == f"{len(RULES) - 1} of {len(RULES)} rules saw all that they need: nothing found"
    assert unseen == "not checked: little-disk: these machines belong to others"


def test_a_rate_is_from_one_commit_to_a_later_one_and_the_watch_ends_when_all_partitions_went_on() -> None:
    def at(seconds: float, *committed: int) -> Reading:
        return seconds, {("tides", n): Offsets(0, each, 1_000) for n, each in enumerate(committed)}

    seen = [at(0, 0, 0), at(4, 0, 0), at(5, 100, 0), at(9, 100, 0), at(10, 100, 100)]
    assert [Progress(seen[:count]).is_clear for count in range(1, 6)] == [False] * 4 + [True]
    assert Progress(seen).rates == (20.0, 0.0)
    assert Progress(seen[:1]).rates is None
    assert Progress(seen[:1]).eaten_in is None
    # Records that retention has deleted are not unread.
    assert Offsets(900, 0, 1_000).unread == 100
    assert Progress([at(0, 1_000, 1_000)]).is_clear


def test_one_connector_is_told_in_one_screen() -> None:
    known = progress(430, 100, grows=660, waited=120.0)
    assert list(screen(jdbc(failed=1, cause="a lock (insert.mode): end it", progress=known))) == [
        "jdbc: RUNNING, 3 tasks (connect-1 1, connect-2 1, connect-3 1, 1 FAILED)",
        "io.debezium.connector.jdbc.JdbcSinkConnector reads tides as connect-jdbc",
        "unread: 2,790 records (tides-1 1,560, tides-0 1,230); the next one was written 2 min ago",
        "now: 5 records/s are read, 20 records/s arrive",
        "why: a lock (insert.mode): end it",
        "",
    ]


def test_the_page_has_a_heading_for_each_rule_and_no_other() -> None:
    codes = [rule.code for rule in RULES]
    page = (CHECKOUT / DOCS).read_text(encoding="utf-8")
    assert re.findall(r"^### (.+)$", page, re.MULTILINE) == codes == [anchor(code) for code in codes]


FILES = sorted((CHECKOUT / "connectors").glob("*/*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_sink_of_every_connector_file_is_its_folder_and_whether_it_sends_one_by_one_is_known(file: Path) -> None:
    config = json.loads(file.read_text())["config"]
    assert sink_of(config) == file.parent.name
    assert (pool_of(config) is not None) == (file.parent.name == "postgres")
    single = {"camel-index", "camel-idempotent", "camel-keyed", "camel-sql"}
    assert (one_by_one(config) is not None) == (file.stem in single)


def test_a_jdbc_url_is_taken_apart() -> None:
    url = "jdbc:postgresql://a:1,b/db?targetServerType=primary&x="
    expected = JdbcUrl("postgresql", ("a:1", "b"), "db", {"targetServerType": "primary", "x": ""})
    assert jdbc_url({"connection.url": url}) == jdbc_url({"camel.beans.pool.url": url}) == expected
    assert (jdbc_url({"connection.url": "http://a:1"}), jdbc_url({})) == (None, None)


def test_the_pool_of_a_task_is_known_by_its_connector() -> None:
    fix = "connection.pool.min_size and connection.pool.max_size"
    pools = {"jdbc": Pool(5, 32, fix), "jdbc-tuned": Pool(1, 32, fix), "confluent-jdbc": Pool(1, 1, "")}
    pools["camel-sql"] = Pool(1, 1, "camel.beans.pool.maxTotal")
    assert {name: pool_of(config_of(f"postgres/{name}")) for name in pools} == pools
    hikari = {"camel.beans.pool": "#class:com.zaxxer.hikari.HikariDataSource", "camel.beans.pool.url": "jdbc:a:b"}
    assert pool_of(hikari) == Pool(10, 10, "camel.beans.pool.maximumPoolSize")
    assert pool_of({"connector.class": "a.Sink", "connection.url": "jdbc:postgresql://a/b"}) is None


def test_a_url_that_leads_to_the_pooler_is_known_by_its_address_or_its_variable() -> None:
    raw = config_of("postgres/jdbc-pgbouncer")
    filled_in = {"connection.url": "jdbc:postgresql://pgbouncer:6432/bench"}
    assert leads_to(filled_in, raw, "127.0.0.1:16432") is True
    assert leads_to({"connection.url": "jdbc:postgresql://localhost:16432/bench"}, {}, "127.0.0.1:16432") is True
    assert leads_to({"connection.url": "jdbc:postgresql://localhost:15432/bench"}, {}, "127.0.0.1:16432") is False
    assert leads_to({"connection.url": "jdbc:postgresql://db/bench"}, {}, "db:5432") is True
    assert leads_to({"connection.url": "jdbc:postgresql://db/bench"}, {}, None) is False
    assert leads_to(config_of("elasticsearch/camel-bulk"), {}, "db:5432") is None


def test_an_aggregate_that_is_none_is_known() -> None:
    bulk = config_of("elasticsearch/camel-bulk")
    without = {key: value for key, value in bulk.items() if key != "camel.beans.aggregate"}
    assert "no camel.beans.aggregate" in str(one_by_one(without))
    assert "camel.aggregation.size is 1" in str(one_by_one({**bulk, "camel.aggregation.size": "1"}))
    single = {**config_of("postgres/jdbc"), "consumer.override.max.poll.records": "1"}
    assert "max.poll.records is 1" in str(one_by_one(single))
