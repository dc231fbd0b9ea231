"""Whether a sink stores what was sent: a sample of documents compared member by member, and checksums in records."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from loadgen.checksum import BENCH, SUM, canonical, checksum, parse
from loadgen.forms import DOCUMENT, Form, is_row, record_in
from sinkbench.analysis.audit import ranges_of
from sinkbench.analysis.words import few_of

NOT_AS_SENT = "are not stored as they were sent: "
"""Of the note of a trial, before what is altered."""

Path = tuple[str, ...]
# Digits of a number in a message, and records that name what is altered.
MOST_DIGITS, MOST_NAMED = 40, 64


@dataclass(frozen=True)
class Content:
    """The result of a comparison; records are identified by `seq`, and `checked` is by their checksum. `altered` ones
    lack a member that was sent, or have another value in it; `how` names members, `unchecked` says why they were not
    checked. `compared_seqs` were compared with the topic, `altered_seqs` are the first altered ones; only the sink has
    `added` members."""

    compared: int = 0
    altered: int = 0
    how: str = ""
    checked: int = 0
    altered_ranges: str = ""
    unchecked: str = ""
    compared_seqs: tuple[int, ...] = field(default=(), compare=False)
    altered_seqs: tuple[int, ...] = field(default=(), compare=False)
    added: frozenset[Path] = field(default=frozenset(), compare=False)


def documents_of(values: Iterable[bytes | None], run: str, form: Form = DOCUMENT) -> dict[int, Any]:
    """The documents or rows of a topic's records that are of the load `run`, by `bench.seq`."""
    found: dict[int, Any] = {}
    for value in values:
        # Other users may have written anything.
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            document = record_in(parse(value or b"null"), form)
            bench = document if is_row(form) else document["bench"]
            opening = "bench_" if is_row(form) else ""
            seq = bench[f"{opening}seq"]
            if bench[f"{opening}run"] == run and type(seq) is int and 0 <= seq < 2**63:
                found[seq] = document
    return found


def compare_content(sent: Mapping[int, Any], stored: Mapping[int, Any]) -> Content:
    """Compares the documents of records that both have, by `seq`, as `loadgen.checksum.parse` reads them. A member
    added by the sink or connector is no alteration. Members have no order, lists have one."""
    found: dict[str, Counter[Path]] = {"gone": Counter(), "changed": Counter(), "added": Counter()}
    seen, altered = [], []
    numbers: dict[str, str] = {}
    for seq in filter(stored.__contains__, sent):
        try:
            differences = list(_differences(sent[seq], stored[seq]))
        except RecursionError:
            continue
        seen.append(seq)
        for path, what, *values in differences:
            found[what][path] += 1
            if (how := _arithmetic(*values)) is not None:
                was, now = (str(value)[:MOST_DIGITS] for value in values)
                numbers.setdefault(how, f"{'.'.join(path)} from {was} to {now}{how}")
        if any(what != "added" for _, what, *_ in differences):
            altered.append(seq)
    added = frozenset(found.pop("added"))
    names = {what: [".".join(path) for path, _ in of.most_common()] for what, of in found.items() if of}
    how = ", ".join(f"{few_of(of) or 'the whole document'} {what}" for what, of in names.items())
    how = "; ".join(filter(None, (how, *numbers.values())))
    return Content(len(seen), len(altered), how, compared_seqs=tuple(seen), altered_seqs=tuple(altered), added=added)


def _differences(sent: Any, stored: Any, path: Path = ()) -> Iterator[tuple[Path, str, Any, Any]]:
    """The path of each member that is gone, changed or added, with its values. In a list nothing may be added."""
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for place, pair in enumerate(zip(sent, stored, strict=True)):
            for below, what, *values in _differences(*pair, (*path, str(place))):
                yield below, "changed" if what == "added" else what, *values
        return
    if not (isinstance(sent, dict) and isinstance(stored, dict)):
        # True is 1 in Python; not in JSON.
        if canonical(sent) != canonical(stored):
            yield path, "changed", sent, stored
        return
    for name in dict.fromkeys([*sent, *stored]):
        below = (*path, str(name))
        if name in sent and name in stored:
            yield from _differences(sent[name], stored[name], below)
        else:
            yield below, "gone" if name in sent else "added", None, None


def _arithmetic(sent: Any, stored: Any) -> str | None:
    """What has made one number of another, in words that may be empty; None for other values."""
    if not all(isinstance(each, int | float | Decimal) and not isinstance(each, bool) for each in (sent, stored)):
        return None
    if isinstance(sent, int) and stored == (sent + 2**63) % 2**64 - 2**63:
        return ", read as a long by the connector or a converter"
    is_same = float(Decimal(sent)) == float(Decimal(stored))
    return ", read as a double by the connector or a converter" if is_same else ""


# Checking this many takes less than a second per trial, and an alteration of one in 5,000 is seen in 98 of 100 trials.
MOST_RECORDS, MOST_BYTES = 20_000, 32_000_000


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
        """`few` is the result of the comparison with the topic; a member that it found added is no alteration."""
        self._few = few
        self._checked = np.zeros(records, dtype=np.bool_)
        self._altered = np.zeros(records, dtype=np.bool_)

    def add(self, documents: Iterable[Any]) -> None:
        """Adds stored documents, as `loadgen.checksum.parse` reads them; those of other loads are ignored."""
        checked, altered, added = [], [], self._few.added
        for document in documents:
            try:
                bench = document[BENCH]
                seq, told = bench["seq"], bench.get(SUM)
                is_sent = told == checksum(document) or (added and told == checksum(_without(document, added)))
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
            altered_seqs=tuple(np.flatnonzero(altered)[:MOST_NAMED].tolist()),
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
