"""Bytes that services received and sent for each record."""

from __future__ import annotations

from collections.abc import Mapping

from sinkbench.analysis.samples import service_of
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
    found: dict[str, list[Bytes | None]] = {}
    for name in before.keys() | after.keys():
        found.setdefault(service_of(name), []).append(_between(before.get(name), after.get(name)))
    return {
        service: Network(received=round(sum(received) / records, 1), sent=round(sum(sent) / records, 1))
        for service, parts in sorted(found.items())
        if len(known := [each for each in parts if each is not None]) == len(parts)
        for received, sent in [tuple(zip(*known, strict=True))]
    }


def _between(before: Bytes | None, after: Bytes | None) -> Bytes | None:
    if before is None or after is None or any(late < early for early, late in zip(before, after, strict=True)):
        return None
    return after[0] - before[0], after[1] - before[1]
