"""Bytes that services received and sent for each record."""

from __future__ import annotations

from collections.abc import Mapping

from sinkbench.analysis.samples import by_service
from sinkbench.results import Network

__all__ = ["network_per_record"]

Bytes = tuple[float, float]
"""Received and sent so far."""


def network_per_record(
    before: Mapping[str, Bytes | None], after: Mapping[str, Bytes | None], records: int
) -> dict[str, Network]:
    """What each service received and sent between two readings, in bytes a record; all its workers together.

    Args:
        before: what each service and worker had received and sent before the connector was made; None of one that could
            not be seen.
        after: the same when the last was stored.
        records: how many there were, at least one.

    Returns:
        Nothing of a service of which a part was not seen, or began to count again.
    """
    risen = {name: _between(before.get(name), after.get(name)) for name in before.keys() | after.keys()}
    received, sent = (
        by_service((name, None if each is None else each[way]) for name, each in sorted(risen.items()))
        for way in (0, 1)
    )
    return {
        service: Network(received=round(took / records, 1), sent=round(gave / records, 1))
        for service, took in received.items()
        if took is not None and (gave := sent[service]) is not None
    }


def _between(before: Bytes | None, after: Bytes | None) -> Bytes | None:
    if before is None or after is None or any(late < early for early, late in zip(before, after, strict=True)):
        return None
    return after[0] - before[0], after[1] - before[1]
