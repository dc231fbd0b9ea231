"""Bytes that services received and sent while a trial drained, for each of its records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sinkbench.analysis.rates import progress
from sinkbench.analysis.samples import Sample, stored_counts
from sinkbench.results import Network

__all__ = ["RECEIVED", "SENT", "network_per_record"]

RECEIVED, SENT = "_received_bytes_total", "_sent_bytes_total"
"""How the names of the signs end, after the service's: bytes of its network interfaces so far."""


def network_per_record(samples: Sequence[Sample]) -> dict[str, Network]:
    """What each service received and sent while a connector drained, in bytes a record.

    From the first reading to the last, divided by the records stored in between. A window within the drain would miss
    what consumers fetch ahead, which is most of a short topic. Only services whose interfaces can be seen are in it.
    """
    names = dict.fromkeys(
        name.removesuffix(ending)
        for sample in samples
        for name in sample.signs
        for ending in (RECEIVED, SENT)
        if name.endswith(ending)
    )
    times, counts = progress(*stored_counts(samples))

    def each_record(sign: str) -> float | None:
        read = [(sample.seconds, sample.signs[sign]) for sample in samples if sign in sample.signs]
        if len(read) < 2 or not times.size:
            return None
        (begin, first), (end, last) = read[0], read[-1]
        before, after = np.interp([begin, end], times, counts)
        # A container that starts anew counts from 0 again.
        return round((last - first) / float(after - before), 1) if last >= first and after > before else None

    found = {name: Network(received=each_record(name + RECEIVED), sent=each_record(name + SENT)) for name in names}
    return {name: each for name, each in found.items() if each.received is not None or each.sent is not None}
