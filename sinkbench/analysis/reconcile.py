"""Compares six counts of the same records, from the generator to the sink."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from sinkbench.results import Reconciliation

# In the order in which a record passes them.
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
    """Two counts that differ, in words, and whether that makes the trial invalid."""

    text: str
    invalid: bool


def reconcile(counts: Reconciliation) -> list[Disagreement]:
    """The disagreements of one trial: each count against the next known one. More puts than reads, or more stored
    than put or read, come from a restarted task; the audit shows the duplicates and the trial is valid. Any other
    disagreement makes it invalid."""
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
    # A count in between that is too high must not hide that the sink lacks records.
    whole, stored = counts.in_topic, counts.stored
    if whole is not None and stored is not None and stored < whole:
        text = f"{whole:,} {WORDS['in_topic']}, but {stored:,} {WORDS['stored']}"
        if all(text != each.text for each in found):
            found.append(Disagreement(text, invalid=True))
    return found
