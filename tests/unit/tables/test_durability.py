"""Durability in a table of its own, and in a sentence where unlike cells are compared."""

import pytest

from sinkbench.results import CellSummary, Durability
from sinkbench.tables.answers import answer_lines
from tests.support.trials import cell_summary, run_summary
from tests.unit.summary.test_answers import asked

BULK, JDBC = "elasticsearch/camel-bulk", "postgres/jdbc"
KAFKA = "acks all, 3 of 3 in sync"
TWICE = Durability(text="2 nodes, disk", nodes=2, on_disk=2, kafka=KAFKA, kafka_nodes=3)
ACKS_1 = TWICE.model_copy(update={"kafka": "acks 1"})
ASYNC = Durability(text="1 node, memory (5 s)", nodes=1, on_disk=0, kafka=KAFKA, kafka_nodes=3)
USUAL = Durability(text="1 node, disk", nodes=1, on_disk=1, kafka="acks all, 1 of 1 in sync", kafka_nodes=1)


def bulk(durability: Durability | None) -> CellSummary:
    return cell_summary(BULK, 27_000, 28_000, 29_000, durability=durability, queries=asked("day", "near"))


def jdbc(durability: Durability | None, label: str = JDBC, rate: float = 90_200) -> CellSummary:
    return cell_summary(label, 84_000, rate, 99_000, durability=durability, queries=asked("day", "near"))


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (ASYNC, TWICE, "They do not store as durably: postgres/jdbc on 2 nodes, disk; {} on 1 node, memory (5 s)."),
        (TWICE, ACKS_1, "postgres/jdbc on 2 nodes, disk (acks 1); {} on 2 nodes, disk (acks all, 3 of 3 in sync)."),
        (None, TWICE, "How durably {} stores is not known."),
    ],
)
def test_an_answer_says_which_cells_are_not_equally_durable(
    one: Durability | None, other: Durability, said: str
) -> None:
    (only,) = answer_lines(run_summary(bulk(one), jdbc(other)))
    assert only.endswith(f" {said.format(BULK)}")


def test_an_answer_of_one_sink_whose_safety_is_varied_says_so_too() -> None:
    (safety,) = answer_lines(run_summary(jdbc(TWICE, "a/on"), jdbc(ASYNC, "a/off", 99_000)))
    assert "They do not store as durably: a/off on 1 node, memory (5 s); a/on on 2 nodes, disk." in safety


def test_an_answer_of_equally_durable_cells_says_nothing_of_it() -> None:
    for durability in (None, USUAL, TWICE):
        (only,) = answer_lines(run_summary(bulk(durability), jdbc(durability)))
        assert "durably" not in only
