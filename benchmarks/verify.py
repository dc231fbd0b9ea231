"""Checks that `sinkbench verify` finds what was planted in many records, and in how much memory.

    .venv/bin/python -m benchmarks.verify [--records RECORDS] [--by key|position|value]

Both sides are made here, as their clients give them: short records in 12 partitions, and rows in another order. Of each
million one is missing, one doubled and one altered. It
prints times, and the peak of its resident memory.
"""

import argparse
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from loadgen.checksum import parse
from sinkbench.settings import load_settings
from sinkbench.verify.audit import Audit
from sinkbench.verify.content import POSITION, Asked, Extractor
from sinkbench.verify.ledger import Ledger
from tests.support.filled import FilledTopic, Message

PARTITIONS, MILLION, AT_ONCE = 12, 1_000_000, 500
NAME = "sinkbench_verify"
TABLE = dict(zip([*POSITION.split(","), "payload"], ("text", "number", "number", "document"), strict=True))
# Coprime to any number of records with the prime factors 2 and 5.
STRIDE = 7_919_999


def value(number: int) -> bytes:
    return b'{"id": %d, "place": "gauge %d", "level": %d.5}' % (number, number % 300, number % 977)


def messages(part: int, first: int, end: int) -> list[Message]:
    numbers = range(first * PARTITIONS + part, end * PARTITIONS + part, PARTITIONS)
    return [
        Message((part, at), (None, value(n)), 3_600 * n + 1) for at, n in zip(range(first, end), numbers, strict=True)
    ]


def rows(records: int) -> Iterator[list[tuple[int, str]]]:
    """Numbers and documents of rows, with what is planted, in chunks."""
    for start in range(0, records, AT_ONCE):
        found = []
        for each in range(start, min(start + AT_ONCE, records)):
            number = each * STRIDE % records
            planted = number % MILLION
            text = value(number).decode()
            if planted != 1:
                found.append((number, text.replace(".5", ".6") if planted == 3 else text))
            if planted == 2:
                found.append(found[-1])
        yield found


def table_rows(records: int) -> Iterator[list[dict[str, Any]]]:
    for chunk in rows(records):
        yield [dict(zip(TABLE, (NAME, n % PARTITIONS, n // PARTITIONS, parse(text)), strict=True)) for n, text in chunk]


def on_values(records: int, by: Any, folder: Path) -> dict[str, Any]:
    ends = {part: len(range(part, records, PARTITIONS)) for part in range(PARTITIONS)}
    asked = Asked(NAME, "postgres:readings", by, TABLE, "payload.id" if by == "key" else None)
    extractor, shares = Extractor(asked, set()), Counter[str]()
    last = time.monotonic()

    def tell(what: str, read: int, of: int | None) -> None:
        nonlocal last
        shares[what], last = shares[what] + time.monotonic() - last, time.monotonic()

    with closing(Ledger(str(folder / "verify.duckdb"))) as ledger:
        topic: Any
        topic, target = FilledTopic(ends, messages, topic=NAME), SimpleNamespace(rows=lambda *_: table_rows(records))
        found = Audit(ledger, extractor, None, tell).run(topic, target, by, by_group=False)
    tell("comparison", 0, None)
    print(", ".join(f"{what} {seconds:.0f} s" for what, seconds in shares.items()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20 * MILLION)
    parser.add_argument("--by", choices=("key", "position", "value"), default="key")
    given = parser.parse_args()
    started = time.monotonic()
    home = load_settings().home
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as folder:
        found = on_values(given.records, given.by, Path(folder))
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print({name: count for name, count in found.items() if isinstance(count, int)})
    print(f"{time.monotonic() - started:.0f} s; peak of resident memory {peak_bytes / 1e6:,.0f} MB")
    millions = -(-given.records // MILLION)
    altered = millions if given.by != "value" else 0
    planted = {"missing": 2 * millions - altered, "doubled": millions, "different": altered}
    assert {name: found[name] for name in planted} == planted
    assert peak_bytes <= 1e9


if __name__ == "__main__":
    main()
