"""Checks the limits of the sinks against tools that are not ours; figures: docs/studies/repeatability.md.

    .venv/bin/python -m benchmarks.limits [insert] [copy] [bulk] [--blocks BLOCKS] [--seconds SECONDS] [--seed SEED]

`insert`: PostgreSQL by INSERT, beside `pgbench`. `copy`: by COPY, beside `psql` and its `\\copy`. `bulk`: Elasticsearch
by its Bulk API, beside `curl`. Without a part, all three run. First sinkbench searches for its batch and connections.
Then both write in each block, in random order: the same bytes, in as large batches, over as many connections, into a
fresh table or index of the same file. Each ratio is that of our rate to the other's in the same block. It is made of
what the sink counts, over the time that each took; the other tools' time has the start of their processes in it.

It takes about 7 minutes on the local stack, which is started if it is down, and then stopped in the end.
"""

import argparse
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from benchmarks.ownstack import local_cluster
from loadgen.options import load_from
from sinkbench.analysis.intervals import ratio_by_block
from sinkbench.limits.clients import make_records
from sinkbench.limits.sinklimit import POOL_BYTES, SinkClient, sink_limit
from sinkbench.limits.tune import Point
from sinkbench.plan.plan import Plan
from sinkbench.sinks import Destination, Sink, open_writer
from sinkbench.stack.tools import find_postgres
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names, cleaning

# pgbench takes no more.
MOST_SCRIPTS = 128
PLAN = Plan.model_validate({"name": "limits", "pipelines": ["postgres/jdbc", "elasticsearch/camel-bulk"], "seed": 1})
# How libpq's parameters are called in the environment, where no list of processes shows them.
PG_VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE", "password": "PGPASSWORD"}


@dataclass(frozen=True)
class Work:
    """What a foreign tool is to write, and where.

    Attributes:
        batches: a file for each batch, with the bytes that sinkbench's own client sends.
        folder: for the tool's own files.
        seconds: about how long.
        rate: what sinkbench's client has written, in records per second: how much there is to do in that time.
    """

    to: Destination
    point: Point
    batches: Sequence[Path]
    folder: Path
    seconds: float
    rate: float

    def shares(self) -> list[list[Path]]:
        """The batches of each connection, the same ones again and again, for about the time wanted."""
        each = max(1, round(self.rate * self.seconds / self.point.batch / self.point.connections))
        turns = range(self.point.connections)
        return [[self.batches[(place + turn) % len(self.batches)] for place in range(each)] for turn in turns]


def _program(name: str, package: str) -> Path:
    found = find_postgres() / name
    program = found if found.exists() else shutil.which(name)
    if program is None:
        raise SystemExit(f"the program {name} is missing; install the package {package}")
    return Path(program)


def _environment(to: Destination) -> dict[str, str]:
    given = conninfo_to_dict(to.endpoint.address)
    named = {variable: str(given[name]) for name, variable in PG_VARIABLES.items() if given.get(name)}
    return {**os.environ, **named, "PGOPTIONS": "-c search_path=public"}


def by_pgbench(work: Work) -> float:
    """Seconds that pgbench took for what it has stored; it does each statement on its own, as our client does."""
    scripts = []
    for number, batch in enumerate(work.batches[:MOST_SCRIPTS]):
        scripts.append(work.folder / f"{number}.sql")
        scripts[-1].write_bytes(batch.read_bytes() + b";\n")
    many, seconds = f"{work.point.connections}", f"{max(1, round(work.seconds))}"
    command = [str(_program("pgbench", "postgresql")), "--no-vacuum", "--protocol", "simple"]
    command += ["--client", many, "--jobs", many, "--time", seconds]
    command += [word for script in scripts for word in ("--file", str(script))]
    done = _run(command, _environment(work.to))
    count = re.search(r"transactions actually processed: (\d+)", done)
    rate = re.search(r"^tps = ([\d.]+)", done, re.MULTILINE)
    if count is None or rate is None:
        raise SystemExit("pgbench did not say how many transactions it has processed")
    # Without the time that connecting took, which is not in ours either.
    return int(count[1]) / float(rate[1])


def by_psql(work: Work) -> float:
    """Seconds that a psql for each connection took, with a `\\copy` a batch."""
    commands = []
    for number, share in enumerate(work.shares()):
        script = work.folder / f"{number}.sql"
        script.write_text("".join(f"\\copy {work.to.target} (payload) from '{batch}'\n" for batch in share))
        options = ["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]
        commands.append([str(_program("psql", "postgresql")), *options, "--file", str(script)])
    return _at_once(commands, _environment(work.to))


def by_curl(work: Work) -> float:
    """Seconds that a curl for each connection took, with a request a batch."""
    program = shutil.which("curl")
    if program is None:
        raise SystemExit("the program curl is missing; install the package curl")
    alias = work.to.endpoint.options["index"]
    url = f"{work.to.endpoint.address}/{alias}/_bulk?require_alias=true&filter_path=errors"
    commands = []
    for number, share in enumerate(work.shares()):
        config = work.folder / f"{number}.curl"
        # An empty Expect, since a curl that waits to be asked for a large body waits a second.
        headers = 'header = "content-type: application/x-ndjson"\nheader = "Expect:"\n'
        asked = (f'url = "{url}"\n{headers}data-binary = "@{batch}"\noutput = "/dev/null"\n' for batch in share)
        config.write_text("next\n".join(asked))
        commands.append([program, "--silent", "--show-error", "--fail", "--config", str(config)])
    return _at_once(commands, dict(os.environ))


# Of each part the sink, the way, and the other tool with what runs it.
PARTS: Mapping[str, tuple[str, str, str, Callable[[Work], float]]] = {
    "insert": ("postgres", "INSERT", "pgbench", by_pgbench),
    "copy": ("postgres", "COPY", "psql", by_psql),
    "bulk": ("elasticsearch", "bulk", "curl", by_curl),
}


def _run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} failed: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}")
    return done.stdout


def _at_once(commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> float:
    """Seconds from the start of the first to the end of the last."""
    started = time.monotonic()
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    try:
        said = [process.communicate()[1] for process in running]
        seconds = time.monotonic() - started
    finally:
        for process in running:
            process.kill()
    for command, process, text in zip(commands, running, said, strict=True):
        if process.returncode:
            raise SystemExit(f"{Path(command[0]).name} failed: {(text.splitlines() or ['no reason'])[-1]}")
    return seconds


def theirs(sink: Sink, work: Work, write: Callable[[Work], float]) -> float:
    """Records per second of the other tool, by what the sink holds afterwards."""
    with cleaning(lambda: sink.drop(work.to.target)):
        sink.create(work.to.target)
        seconds = write(work)
        sink.settle(work.to.target)
        return sink.count(work.to.target) / seconds


def prepared(to: Destination, point: Point, folder: Path) -> list[Path]:
    """Files with the batches of our own client's records, byte for byte."""
    load = PLAN.load
    options = {"keys": load.keys, "record_bytes": load.record_bytes, "count": POOL_BYTES // load.record_bytes}
    records = make_records(load_from({"bootstrap": "-", "topic": "-", "run": to.target, **options}))
    files = []
    with closing(open_writer(to)) as writer:
        for at in range(0, len(records) - point.batch + 1, point.batch):
            files.append(folder / f"{at}.batch")
            files[-1].write_bytes(writer.batch(records[at : at + point.batch]))
    return files


def report(cluster: Cluster, part: str, blocks: int, seconds: float, seed: int) -> None:
    """Measures one part and prints its line."""
    sink, way, tool, write = PARTS[part]
    to = Destination(sink, way, Names.of(f"benchmark_{part}").target, cluster.stack.endpoints.sinks[sink])
    found = sink_limit(cluster, to, lambda text: None).best
    if found is None or not found.records_per_second:
        raise SystemExit(f"{way}: our own client stored nothing")
    point, rate = Point(found.batch or 1, found.connections), found.records_per_second
    draw = random.Random(seed)
    ours: dict[int, float] = {}
    others: dict[int, float] = {}
    with (
        tempfile.TemporaryDirectory(prefix="sinkbench-") as folder,
        closing(SinkClient(cluster.sink(sink), to, PLAN.load)) as client,
    ):
        batches = prepared(to, point, Path(folder))

        def measure_ours(block: int) -> None:
            measured = client.measure(point, seconds)
            if not measured.records_per_second:
                raise SystemExit(f"{way}: {measured.problem}")
            ours[block] = measured.records_per_second

        def measure_theirs(block: int) -> None:
            others[block] = theirs(cluster.sink(sink), Work(to, point, batches, Path(folder), seconds, rate), write)

        for block in range(1, blocks + 1):
            for measure in draw.sample([measure_ours, measure_theirs], 2):
                measure(block)
    ratio = ratio_by_block(tool, ours, others)
    if ratio is None:
        raise SystemExit(f"{way}: {tool} stored nothing")
    sure = "too few blocks for an interval"
    if ratio.interval is not None:
        sure = f"{ratio.interval.low:.2f} to {ratio.interval.high:.2f} in {ratio.blocks} blocks"
    medians = [f"{statistics.median(each.values()):,.0f}" for each in (ours, others)]
    connections = "1 connection" if point.connections == 1 else f"{point.connections} connections"
    how = f"{point.batch:,} records, {connections}"
    print(f"{way} to {tool}: {ratio.estimate:.2f} ({sure}); {' and '.join(medians)} records/s, by {how}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--blocks", type=int, default=7, help="of both, each (7)")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each measurement (5)")
    parser.add_argument("--seed", type=int, default=1, help="of the order in each block (1)")
    given = parser.parse_args()
    if unknown := sorted(set(given.parts) - set(PARTS)):
        parser.error(f"no such part: {', '.join(unknown)}")
    with local_cluster(PLAN) as cluster:
        for part in given.parts or PARTS:
            report(cluster, part, given.blocks, given.seconds, given.seed)


if __name__ == "__main__":
    main()
