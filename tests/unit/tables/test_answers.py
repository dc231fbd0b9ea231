"""The answers of a run in words: each sentence is true when it is quoted alone."""

import re

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.results import CellSummary, Durability, PlanRef, Reason
from sinkbench.tables.answers import answer_lines, at_least_in_words
from tests.support.trials import cell_summary, run_summary
from tests.unit.summary.test_answers import CAMEL, POOL, QUERIES, doing, failed, not_final

INDEX, BULK, JDBC = "elasticsearch/camel-index", "elasticsearch/camel-bulk", "postgres/jdbc"
POOLED, INDEXED = "postgres/jdbc-pgbouncer", "postgres/jdbc-indexed"
EQUAL = "Elasticsearch or PostgreSQL, both answering all 2 queries from an index: "


def said(*cells: CellSummary, **fields: object) -> list[str]:
    return answer_lines(run_summary(*cells, **fields))


def warming(label: str, rate: float, code: ReasonCode = ReasonCode.NOT_WARM) -> CellSummary:
    reason = Reason(code=code, text="still warming: it compiled", figures={"records_per_second": rate})
    return cell_summary(label, rate, rate, at_least=reason)


def default_race() -> list[CellSummary]:
    camel = {"connector": CAMEL}
    jdbc = {"job": (), "connector": "d.Jdbc", "records_per_write": 492}
    direct, pooled = {"clients_peak": 18, "server_peak": 18}, {"clients_peak": 18, "server_peak": 3}
    disk = [{"median": size, "low": size, "high": size, "values": [size]} for size in (653.0, 1_060.0)]
    return [
        doing(INDEX, 1_136, 1_196, 1_256, records_per_write=1.0, **camel),
        doing(BULK, 25_941, 24_900, 25_400, records_per_write=497, **camel),
        doing(JDBC, 72_580, 83_290, 93_915, connections=direct, disk_bytes_per_record=disk[0], **jdbc),
        doing(POOLED, 45_062, 45_502, 47_874, pool=POOL, connections=pooled, **jdbc),
        doing(INDEXED, 25_009, 25_303, 26_958, pipeline=JDBC, target="t", disk_bytes_per_record=disk[1],
              **{**jdbc, "job": QUERIES}),
    ]  # fmt: skip


def test_the_default_race_fits_on_a_screen_with_the_answer_first() -> None:
    quick = PlanRef(name="quick", sha256="0", trials=3)
    lines = said(*default_race(), plan=quick, environment={"versions": {"pgbouncer": "1.18.0/bouncer"}})
    assert lines == [
        EQUAL + "no difference found between elasticsearch/camel-bulk and postgres/jdbc-indexed (min-max 0.92-1.04).",
        "Batching: 497 records a request, not 1, store 21.2 times as much (19.8-22.8) in Elasticsearch.",
        "Indexing for 2 queries leaves PostgreSQL 30 % (27-37 %) of its rate and adds 62 % disk.",
        "PgBouncer 1.18.0 (transaction): 55 % (48-66 %) of the direct rate; 3 server connections, not 18.",
    ]
    assert sum(-(-len(line) // 98) for line in lines) <= 6


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (not_final(doing(BULK), 25_000, bounded=True), "camel-bulk 25,000, 1.0[48] times at most. To decide"),
        (not_final(doing(BULK)), "since elasticsearch/camel-bulk .warming. may be faster. To decide: `sinkbench"),
        (failed(doing(BULK, 30_000)), "To decide: repair elasticsearch/camel-bulk or take it out of the plan, `sink"),
        (doing(BULK, 30_000, job=None), "elasticsearch/camel-bulk .queries not checked. may be faster"),
    ],
)
def test_what_is_not_decided_says_why_and_what_decides_it(other: CellSummary, words: str) -> None:
    (first, *_) = said(doing(INDEX, 1_000), other, doing(INDEXED, 26_000, 27_000))
    assert first.startswith(f"{EQUAL}NOT DECIDED")
    assert re.search(words, first), first
    assert first.endswith("`sinkbench race mine --trials 5`.")


def test_an_unfinished_run_is_resumed_and_a_missing_cell_named() -> None:
    plan = PlanRef(name="quick", sha256="0", trials=5, cells={f"{BULK}@3x1": "elasticsearch"})
    (first,) = said(doing(INDEX, 1_000), doing(INDEXED, 26_000), plan=plan, complete=False)
    assert "NOT DECIDED, since elasticsearch/camel-bulk@3x1 (no trial) may be faster." in first
    assert first.endswith("To decide: `sinkbench resume r`.")
    (first,) = said(doing(INDEX, 1_000), doing(INDEXED, 26_000), plan=plan)
    # The plan that is raced without a name.
    assert first.endswith("`sinkbench race --trials 10`.")


@pytest.mark.parametrize(("environment", "is_said"), [({"cpu_count": 2}, True), ({"cpu_count": 8}, False), ({}, False)])
def test_a_load_of_others_is_in_the_sentence_if_it_is_much_of_the_machine(
    environment: dict[str, object], is_said: bool
) -> None:
    cells = [doing(INDEX, 2_000, foreign_cores=0.4), doing(INDEXED, 90_000, foreign_cores=0.1)]
    (only,) = said(*cells, environment=environment)
    taken = "Other programs used up to 0.4 cores during elasticsearch/camel-index: race on a quieter machine."
    assert only.endswith(taken) is is_said


@pytest.mark.parametrize("cells", [[], [cell_summary("a/b", 5)]])
def test_there_is_no_answer_where_nothing_is_to_be_compared(cells: list[CellSummary]) -> None:
    assert said(*cells) == []


def test_without_two_cells_that_can_be_compared_only_what_is_missing_is_said() -> None:
    lost, cold = cell_summary("a/c", 9, passed=False, verdict="LOST 1"), warming("a/d", 9)
    assert said(cell_summary("a/b", 5), lost, cold) == [
        "No answer: a/c (LOST 1); a/d (at least 9 records/s, warming). To have it: race again while the"
        " stack is up (`sinkbench up` first), since warming up takes longer here."
    ]
    assert said(lost, doing("a/e", 5, job=None)) == [
        "No answer: a/c (LOST 1); a/e (what it can answer was not checked)."
    ]


def test_an_interval_that_holds_1_is_no_difference() -> None:
    slow, fast = [100.0, 105, 99, 103, 101], [101.0, 99, 106, 100, 104]
    (only,) = said(doing(BULK, *slow), doing(INDEXED, *fast))
    assert re.match(f"{EQUAL}no difference found between .* [(]95 % CI 0[.]", only)


def test_at_least_is_said_of_no_cell_that_may_be_quoted_or_is_invalid() -> None:
    assert at_least_in_words(warming(INDEX, 1_308)) == "at least 1,308"
    assert at_least_in_words(cell_summary(INDEX, 5)) is None
    invalid = {"reasons": [Reason(code=ReasonCode.NO_RATE, text="x")]}
    assert at_least_in_words(warming(INDEX, 1_308).model_copy(update=invalid)) is None


def test_sinks_without_a_common_job_are_not_compared() -> None:
    (some,) = said(*(doing(f"{sink}/x", 20_000, job=("day",)) for sink in ("elasticsearch", "postgres")))
    assert "both answering 1 of 2 queries from an index" in some
    assert said(doing(BULK, 27_000), doing(JDBC, 90_000, job=())) == [
        "No two sinks do the same job: elasticsearch/camel-bulk answers 2 of 2 queries from an index, postgres/jdbc"
        " answers 0 of 2 queries from an index."
    ]


KAFKA = "acks all, 3 of 3 in sync"
TWICE = Durability(text="2 nodes, disk", nodes=2, on_disk=2, kafka=KAFKA, kafka_nodes=3)
ACKS_1 = TWICE.model_copy(update={"kafka": "acks 1"})
ASYNC = Durability(text="1 node, memory (5 s)", nodes=1, on_disk=0, kafka=KAFKA, kafka_nodes=3)
USUAL = Durability(text="1 node, disk", nodes=1, on_disk=1, kafka="acks all, 1 of 1 in sync", kafka_nodes=1)


def stores(durability: Durability | None, label: str = JDBC, rate: float = 90_200) -> CellSummary:
    return doing(label, 0.9 * rate, rate, 1.1 * rate, durability=durability)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (ASYNC, TWICE, "They do not store as durably: postgres/jdbc on 2 nodes, disk; {} on 1 node, memory (5 s)."),
        (TWICE, ACKS_1, "postgres/jdbc on 2 nodes, disk (acks 1); {} on 2 nodes, disk (acks all, 3 of 3 in sync)."),
        (None, TWICE, "How durably {} stores is not known."),
    ],
)
def test_an_answer_says_which_cells_are_not_equally_durable(
    one: Durability | None, other: Durability, words: str
) -> None:
    (only,) = said(stores(one, BULK, 28_000), stores(other))
    assert only.endswith(f" {words.format(BULK)}")


def test_an_answer_of_one_sink_whose_safety_is_varied_says_so_too() -> None:
    (safety,) = said(stores(TWICE, "a/on"), stores(ASYNC, "a/off", 99_000))
    assert "They do not store as durably: a/off on 1 node, memory (5 s); a/on on 2 nodes, disk." in safety


def test_an_answer_of_equally_durable_cells_says_nothing_of_it() -> None:
    for durability in (None, USUAL, TWICE):
        (only,) = said(stores(durability, BULK, 28_000), stores(durability))
        assert "durably" not in only
