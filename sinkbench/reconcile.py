"""Six counts of the same records, from the generator to the sink, held against one another."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from sinkbench.results import Reconciliation

__all__ = ["Disagreement", "reconcile"]

# Each count in the order that a record takes, as a person would say it.
WORDS = {
    "sent": "sent",
    "acknowledged": "acknowledged",
    "in_topic": "in the topic",
    "consumed": "committed as read",
    "put": "put to the sink by the tasks",
    "stored": "stored",
}


@dataclass(frozen=True)
class Disagreement:
    """Two counts that should be one: in words with both figures, and whether the trial's numbers may still be used."""

    text: str
    invalid: bool


def reconcile(counts: Reconciliation) -> list[Disagreement]:
    """What does not agree among the counts of one trial, each with the next one that is known.

    More puts than records read, and more records stored than put or read, are records that went twice, after a task had
    begun again from its last commit: the rate counts what is stored, the audit shows duplicates, and the trial stands.
    Everything else makes it invalid: records that got lost between two counts, and counts of more than there can be.

    Returns:
        The disagreements in the order that a record takes; none if all counts that are known are equal.
    """
    known = [(name, value) for name in WORDS if (value := getattr(counts, name)) is not None]
    found = []
    for (before, earlier), (after, later) in pairwise(known):
        if earlier == later:
            continue
        text = f"{earlier:,} {WORDS[before]}, but {later:,} {WORDS[after]}"
        twice = (later > earlier and after in ("put", "stored")) or (
            # Put twice and stored once, as by an upsert.
            (before, after) == ("put", "stored") and later == counts.in_topic
        )
        found.append(Disagreement(text + (" (some twice)" if twice else ""), invalid=not twice))
    # A count in between that is too high must not hide that the sink lacks records; where one is missing, its own pair
    # has said so.
    whole, stored = counts.in_topic, counts.stored
    if whole is not None and stored is not None and stored < whole:
        text = f"{whole:,} {WORDS['in_topic']}, but {stored:,} {WORDS['stored']}"
        if all(text != each.text for each in found):
            found.append(Disagreement(text, invalid=True))
    return found
