"""Whether stored records equal what was sent, by the checksum in each record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from loadgen.checksum import BENCH, SUM, checksum
from sinkbench.analysis.audit import ranges_of
from sinkbench.analysis.content import Content, Path

# Checking this many takes one or two seconds per trial.
MOST_RECORDS, MOST_BYTES = 50_000, 32_000_000


def bear_checksums(sent: Mapping[int, Any]) -> bool:
    """Whether the records of a topic, as `documents_of` gives them, have checksums. Rows have none."""
    benches = [document.get(BENCH) for document in sent.values()]
    return bool(benches) and all(isinstance(bench, dict) and SUM in bench for bench in benches)


def one_in(records: int, record_bytes: float) -> int:
    """N if one in N records is checked, so that the check takes at most a few seconds."""
    return max(1, -(-records // max(1, min(MOST_RECORDS, int(MOST_BYTES / record_bytes)))))


class ChecksumAudit:
    """Checks the stored records of a load and adds the result to a comparison with the topic."""

    def __init__(self, records: int, few: Content) -> None:
        """`few` is the result of the comparison with the topic; a member that it found added does not count as an
        alteration."""
        self._few = few
        self._checked = np.zeros(records, dtype=np.bool_)
        self._altered = np.zeros(records, dtype=np.bool_)

    def add(self, documents: Iterable[Any]) -> None:
        """Adds stored documents, as `loadgen.checksum.parse` reads them; those of other loads are ignored."""
        checked, altered = [], []
        for document in documents:
            try:
                bench = document[BENCH]
                seq, told = bench["seq"], bench.get(SUM)
                is_sent = told == checksum(document) or (
                    self._few.added and told == checksum(_without(document, self._few.added))
                )
            except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
                continue
            if type(seq) is int and 0 <= seq < len(self._checked):
                checked.append(seq)
                if not is_sent:
                    altered.append(seq)
        self._checked[checked] = True
        self._altered[altered] = True

    def result(self, unchecked: str = "") -> Content:
        """The result so far; `unchecked` says why records were not checked, for a person."""
        few = self._few
        compared, altered = self._checked.copy(), self._altered.copy()
        for marks, seqs in ((compared, few.compared_seqs), (altered, few.altered_seqs)):
            marks[[seq for seq in seqs if 0 <= seq < len(marks)]] = True
        return Content(
            compared=int(np.count_nonzero(compared)),
            altered=int(np.count_nonzero(altered)),
            how=few.how,
            checked=int(np.count_nonzero(self._checked)),
            altered_ranges=ranges_of(altered),
            unchecked=unchecked,
        )


def _without(document: dict[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    for first, *rest in paths:
        if first not in document:
            continue
        if not rest:
            document = {name: value for name, value in document.items() if name != first}
        elif isinstance(document[first], dict):
            document = {**document, first: _without(document[first], [tuple(rest)])}
    return document
