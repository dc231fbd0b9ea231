"""The comparison in DuckDB against one in plain Python."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinkbench.verify.content import GONE, UNREAD, By, Entry
from sinkbench.verify.ledger import FAULTS, Ledger
from tests.support.counts import count as how_many

PARTITIONS = 3
HOURS = {-1: None, 0: "1970-01-01 00:00", 1: "1970-01-01 01:00", 2: "1970-01-01 02:00"}
# Few keys and contents, so that all meet.
CONTENTS = st.sampled_from([GONE, UNREAD, 7, 8, 2**64 - 1])
KEYS = st.integers(0, 2)


class Sent(NamedTuple):
    part: int
    pos: int
    hour: int
    key: int
    content: int


def keyed(key: int) -> bytes:
    return (2**64 - 1 - key).to_bytes(8, "little") + key.to_bytes(8, "little")


@st.composite
def topics(draw: st.DrawFn) -> list[Sent]:
    """Records of all partitions, with gaps between offsets, as compaction leaves them."""
    found = []
    for part in range(PARTITIONS):
        offsets = sorted(draw(st.sets(st.integers(0, 9), max_size=5)))
        found += [Sent(part, pos, draw(st.integers(-1, 2)), draw(KEYS), draw(CONTENTS)) for pos in offsets]
    return found


def expected(sent: Sequence[Sent], due: int, rows: Sequence[tuple[int, int]], by: By) -> tuple[Counter[str], ...]:
    """The faults, and those by partition and by hour."""
    held = defaultdict(list)
    for key, content in rows:
        held[key].append(content)
    total, parts, hours = Counter[str](), Counter[str](), Counter[str]()
    for key in {each.key for each in sent if each.pos < due}:
        every = [each for each in sent if each.key == key]
        needed = [each for each in every if each.pos < due]
        later = [each for each in every if each.pos >= due]
        last = max(needed, key=lambda each: (each.pos, each.part))
        found = held[key]
        ends = {each.part: each.content for each in sorted(needed, key=lambda each: each.pos)}
        right = {*ends.values(), *(each.content for each in later)}
        wanted = len(needed) if by == "value" else 1
        faults = Counter(
            missing=0 if GONE in right else max(0, wanted - len(found)),
            doubled=max(0, len(found) - wanted - (len(later) if by == "value" else 0)),
            different=int(bool(found) and last.content != UNREAD and UNREAD not in found and not right & set(found)),
        )
        for fault, count in faults.items():
            total[fault] += count
            parts[f"{fault} {last.part}"] += count
            hours[f"{fault} {HOURS[last.hour]}"] += count
    return +total, +parts, +hours


def faults(slots: Sequence[dict[str, Any]], by: str) -> Counter[str]:
    return +Counter({f"{fault} {each[by]}": each[fault] for each in slots for fault in FAULTS})


@pytest.fixture(scope="module")
def ledger() -> Iterator[Ledger]:
    ledger = Ledger(":memory:")
    yield ledger
    ledger.close()


@pytest.mark.long
@given(
    sent=topics(),
    due=st.integers(0, 10),
    rows=st.lists(st.tuples(st.integers(0, 5), CONTENTS), max_size=6),
    by=st.sampled_from(["key", "value"]),
)
@settings(max_examples=how_many(300, 40), deadline=None)
def test_the_comparison_is_that_of_plain_python(
    ledger: Ledger, sent: list[Sent], due: int, rows: list[tuple[int, int]], by: By
) -> None:
    if by == "value":
        sent, rows = [each._replace(content=UNREAD) for each in sent], [(key, UNREAD) for key, _ in rows]
    ledger.clear("topic")
    ledger.clear("target")
    ledger.set_parts(dict.fromkeys(range(PARTITIONS), (0, due, 0)))
    for each in sent:
        ledger.add_record(Entry(keyed(each.key), each.content), (each.part, each.pos), each.hour)
    ledger.add_rows(Entry(keyed(key), content) for key, content in rows)
    ledger.save({}, now=True)
    found = ledger.compare(by)
    total, parts, hours = expected(sent, due, rows, by)
    assert +Counter({fault: found[fault] for fault in FAULTS}) == total
    assert (faults(found["partitions"], "partition"), faults(found["hours"], "hour")) == (parts, hours)
    assert found["unknown"] == sum(key not in {each.key for each in sent} for key, _ in rows)
    assert found["records"] == sum(each["records"] for each in found["hours"])
