"""What a cell's trials agree on of durability, and whether cells are alike in it."""

from sinkbench.metrics.durability import alike
from sinkbench.results import CellSummary, Durability
from sinkbench.summary.cells import summarize
from tests.support.trials import CELL, cell_summary, trial

SAFE = Durability(text="1 node, disk", nodes=1, on_disk=1, kafka="acks all, 1 of 1 in sync", kafka_nodes=1)
FAST = Durability(text="1 node, memory (5 s)", nodes=1, on_disk=0, kafka=SAFE.kafka, kafka_nodes=1)


def cell(durability: Durability | None) -> CellSummary:
    return cell_summary(durability=durability)


def test_a_cell_has_what_all_of_its_trials_had() -> None:
    (found,) = summarize([CELL], [trial(durability=SAFE, block=block) for block in (1, 2)])
    assert found.durability == SAFE
    (unknown,) = summarize([CELL], [trial()])
    assert (unknown.durability, unknown.notes) == (None, [])
    (invalid,) = summarize([CELL], [trial(durability=SAFE, invalid=["no"])])
    assert invalid.durability == SAFE


def test_trials_that_differ_leave_it_open_and_a_note_says_so() -> None:
    (found,) = summarize([CELL], [trial(durability=SAFE), trial(durability=FAST, block=2)])
    assert found.durability is None
    assert "its trials were not equally durable: 1 node, disk; 1 node, memory (5 s)" in found.notes


def test_cells_are_alike_if_their_promises_are() -> None:
    assert alike([cell(SAFE), cell(SAFE)]) is True
    assert alike([cell(SAFE), cell(FAST)]) is False
    assert alike([cell(SAFE), cell(SAFE.model_copy(update={"kafka": "acks 1"}))]) is False
    assert alike([cell(SAFE), cell(None)]) is None
    # Of a sink that does not tell what it promises only Kafka's part is known.
    assert alike([cell(SAFE), cell(Durability(kafka=SAFE.kafka, kafka_nodes=1))]) is None
    assert alike([cell(None), cell(None)]) is True
