"""What of a cell is on how many nodes when a record counts as stored, over its trials, and beside other cells."""

from __future__ import annotations

from collections.abc import Sequence

from sinkbench.results import CellSummary, Durability, TrialRecord

__all__ = ["alike", "durability_notes", "durability_over", "is_worth_telling"]


def durability_over(trials: Sequence[TrialRecord]) -> Durability | None:
    """What all trials that tell it agree on; None if none tells it, or if they differ."""
    told = _told(trials)
    return told[0] if len({_promised(each) for each in told}) == 1 else None


def durability_notes(trials: Sequence[TrialRecord]) -> list[str]:
    """That the trials of a cell were not equally durable, if so."""
    texts = list(dict.fromkeys(each.text or "not known" for each in _told(trials)))
    return [f"its trials were not equally durable: {'; '.join(texts)}"] if len(texts) > 1 else []


def alike(cells: Sequence[CellSummary]) -> bool | None:
    """Whether cells are equally durable; None if that is known of some of them only.

    Cells of which nothing is known are alike.
    """
    told = [None if cell.durability is None or not cell.durability.text else cell.durability for cell in cells]
    if None in told:
        return None if any(told) else True
    return len({_promised(each) for each in told if each is not None}) < 2


def is_worth_telling(cells: Sequence[CellSummary]) -> bool:
    """Whether cells differ in it, or one of them is not as usual: on the disk of one node."""
    usual = {(1, 1)}
    found = {(each.nodes, each.on_disk) for cell in cells if (each := cell.durability) is not None}
    in_kafka = {each.kafka_nodes for cell in cells if (each := cell.durability) is not None}
    return bool(found) and (alike(cells) is not True or not found <= usual or not in_kafka <= {1, None})


def _told(trials: Sequence[TrialRecord]) -> list[Durability]:
    return [trial.durability for trial in trials if trial.durability is not None]


def _promised(found: Durability) -> tuple[object, ...]:
    return found.text, found.nodes, found.on_disk, found.kafka
