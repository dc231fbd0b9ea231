"""Checks that `sinkbench verify` finds what was planted in a table of many records, and in how much memory.

    .venv/bin/python -m benchmarks.verify [--records RECORDS] [--record-bytes BYTES]

Records go into 12 partitions of Kafka, and by COPY into a table of PostgreSQL, where some are missing, doubled or
altered. The local stack is started if it is down, and then stopped in the end.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress

import psutil
import psycopg

from sinkbench.race.lock import only_race
from sinkbench.services.kafka import Kafka, Record, send
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack.local import LocalStack

NAME, PARTITIONS, AT_ONCE = f"sinkbench_verify_{os.getpid()}", 12, 100_000
COLUMNS = "__connect_topic text, __connect_partition int, __connect_offset bigint, payload jsonb"
PLANTED, COPIES = 300, {"missing": 0, "doubled": 2, "different": 1}
MORE_BYTES = 450  # of headers, and of verify's own files, beside a record in Kafka, the table and PostgreSQL's log


def fill(settings: dict[str, str], copy: psycopg.Copy, given: argparse.Namespace, planted: dict[int, str]) -> None:
    for start in range(0, given.records, AT_ONCE):
        records, rows = [], []
        for number in range(start, min(start + AT_ONCE, given.records)):
            text = (b'{"id": %d, "level": 9.5, "text": "' % number).ljust(given.record_bytes - 2, b"x") + b'"}'
            fault, (offset, part) = planted.get(number, ""), divmod(number, PARTITIONS)
            records.append(Record(NAME, text, None, part))
            stored = text.replace(b"9.5", b"9.6") if fault == "different" else text
            rows += [b"%s\t%d\t%d\t%s\n" % (NAME.encode(), part, offset, stored)] * COPIES.get(fault, 1)
        send(settings, records, 60)
        copy.write(b"".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--record-bytes", type=int, default=100)
    given, home, peak = parser.parse_args(), load_settings().home, 0
    if given.records < (least := len(COPIES) * PLANTED):
        parser.error(f"--records {given.records}: {least} of them are planted; give as many or more")
    home.mkdir(parents=True, exist_ok=True)
    free, needed = psutil.disk_usage(str(home)).free / 1e9, given.records * (3 * given.record_bytes + MORE_BYTES) / 1e9
    if free < needed:
        raise SystemExit(f"{home}: {free:.1f} GB are free, {needed:.1f} GB are needed; give fewer --records")
    drawn = iter(random.Random(1).sample(range(given.records), len(COPIES) * PLANTED))
    planted = {next(drawn): fault for fault in COPIES for _ in range(PLANTED)}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    stack = LocalStack(load_settings())
    with only_race(stack.lock_file, CHECKOUT, "verify"), ExitStack() as clean:
        if stack.start_id() is None:
            clean.callback(stack.down)
        stack.up(lambda line: None)
        ends, address = stack.endpoints, stack.endpoints.sinks["postgres"].address
        kafka = Kafka(ends.kafka, ends.kafka_settings)
        clean.callback(kafka.delete_topic, NAME)
        kafka.create_topic(NAME, PARTITIONS)
        database = clean.enter_context(psycopg.connect(address, autocommit=True))
        clean.callback(database.execute, f"DROP TABLE IF EXISTS {NAME}".encode())
        database.execute(f"CREATE TABLE {NAME} ({COLUMNS})".encode())
        with psycopg.connect(address) as other, other.cursor().copy(f"COPY {NAME} FROM STDIN".encode()) as copy:
            fill({**ends.kafka_settings, "bootstrap.servers": ends.kafka}, copy, given, planted)
        work, started = clean.enter_context(tempfile.TemporaryDirectory(dir=home)), time.monotonic()
        asked = ["--topic", NAME, "--into", f"postgres:{NAME}", "--position", "--format", "json", "--work", work]
        command = [sys.executable, "-m", "sinkbench", "verify", "--stack", "local", *asked]
        process = clean.enter_context(subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True))
        clean.callback(process.kill)
        while process.poll() is None:
            with suppress(psutil.NoSuchProcess):
                all_of = [(first := psutil.Process(process.pid)), *first.children(recursive=True)]
                peak = max(peak, sum(each.memory_info().rss for each in all_of))
            time.sleep(0.1)
        print(f"{given.records:,} records: {time.monotonic() - started:.0f} s, at most {peak / 1e6:,.0f} MB resident")
        found = json.loads(process.communicate()[0] or "{}")
        print("; ".join(f"{fault}: {PLANTED} planted, {found.get(fault)} found" for fault in COPIES))
    assert peak <= 1e9 and all(found.get(fault) == PLANTED for fault in COPIES)  # noqa: PT018 - both are printed


if __name__ == "__main__":
    main()
