"""Measures the memory and the time of a trial's audit of many records; figures: docs/studies/controller.md.

    .venv/bin/python -m benchmarks.audit [--postgres RECORDS] [--elasticsearch RECORDS] [--alone RECORDS]

Small records go into a table by COPY and into an index by bulk, without one of them and with one twice, which each
audit must find. It runs in a process of its own, whose largest memory counts. With --alone no sink is read: the
controller audits made-up rows, so that only its own part is seen. A stack that is down is started, and stopped.
"""

import argparse
import resource
import time
from collections.abc import Iterable
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.audit import SeqAudit
from sinkbench.race.lock import only_race
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.sinks import Destination, open_sink, open_writer
from sinkbench.stack.local import LocalStack

RUN, TARGET, AT_ONCE = "audit_1", "tides_a0d170_001", 5_000
LOST, TWICE = 777, 1_234
WAYS = {"postgres": "COPY", "elasticsearch": "bulk"}


def fill(stack: LocalStack, sink: str, records: int) -> None:
    to = Destination(sink, WAYS[sink], TARGET, stack.endpoints.sinks[sink])
    with closing(open_writer(to)) as writer:
        for start in range(0, records, AT_ONCE):
            seqs = [TWICE if seq == LOST else seq for seq in range(start, min(start + AT_ONCE, records))]
            writer.write(writer.batch([b'{"bench":{"run":"%b","seq":%d}}' % (RUN.encode(), seq) for seq in seqs]))


def audit(answer: Connection, sink: str, records: int) -> None:
    """Sends the lost and the doubled records, seconds, and the largest memory of this process in MB."""
    began, found = time.monotonic(), SeqAudit(records)

    def take(rows: Iterable[npt.NDArray[np.int64]]) -> None:
        for each in rows:
            found.add(each)

    if sink in WAYS:
        with closing(open_sink(sink, LocalStack(load_settings()).endpoints, CHECKOUT)) as opened:
            take(opened.sequences(TARGET, RUN))
    else:
        starts = range(0, records, 100_000)
        chunks = (np.arange(start, min(start + 100_000, records)) for start in starts)
        take(np.where(chunk == LOST, TWICE, chunk) for chunk in chunks)
    result, ranges = found.result(), (found.lost_ranges(), found.duplicated_ranges())
    if ranges != (str(LOST), str(TWICE)) or (result.lost, result.duplicates) != (1, 1):
        raise SystemExit(f"the audit found {ranges}, {result}")
    answer.send((time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3))


def audited(sink: str, records: int) -> str:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=audit, args=(there, sink, records))
    process.start()
    there.close()
    seconds, megabytes = here.recv()
    process.join()
    return f"| {sink} | {records:,} | {seconds:,.0f} s | {megabytes:,.0f} MB |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", type=int, default=20_000_000, help="records in a table (20000000)")
    parser.add_argument("--elasticsearch", type=int, default=5_000_000, help="records in an index (5000000)")
    parser.add_argument("--alone", type=int, default=100_000_000, help="made-up rows (100000000)")
    given = parser.parse_args()
    print(audited("none", given.alone), flush=True)
    stack = LocalStack(load_settings().with_workers(1))
    was_up = stack.start_id() is not None
    with only_race(stack.lock_file, CHECKOUT, "audit"):
        try:
            stack.up(lambda text: None)
            for sink, records in (("postgres", given.postgres), ("elasticsearch", given.elasticsearch)):
                for part in (records // 4, records):
                    with closing(open_sink(sink, stack.endpoints, CHECKOUT)) as opened:
                        opened.create(TARGET)
                        try:
                            fill(stack, sink, part)
                            opened.settle(TARGET)
                            print(audited(sink, part), flush=True)
                        finally:
                            opened.drop(TARGET)
        finally:
            if not was_up:
                stack.down()


if __name__ == "__main__":
    main()
