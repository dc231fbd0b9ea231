"""Every reader of a file takes what it finds or refuses it in a few lines with the file's name: no traceback, no hang.

`scripts/test --all` tries 1,000 bad files for each reader.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from loadgen.client import read_client_config
from loadgen.dataset.source import open_dataset
from loadgen.errors import LoadgenError
from sinkbench.cli.main import main
from sinkbench.errors import SinkbenchError, UserError
from sinkbench.plan.entries import load_queries, read_connector
from sinkbench.plan.plan import load_plan
from sinkbench.plan.sections import load_prices
from sinkbench.report.timeline import course_of, read_samples
from sinkbench.runs.reader import list_runs, load_run
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.sinks.jdbcurl import jdbc_url
from sinkbench.stack.external import load_stack_file
from sinkbench.topology import load_topology
from tests.support.counts import count
from tests.support.mutation import changed_bytes, changed_json, changed_values
from tests.support.samplerun import keep_run

FILES_OF_A_SEED = 20
# A whole command takes tens of milliseconds, a report more.
OF_READERS, OF_COMMANDS, OF_REPORTS = count(1000, 60), count(50, 10), count(4, 2)
REFUSED = (SinkbenchError, LoadgenError)
NAMES = ("postgres/jdbc", "jdbc", "two", "plan.yaml", "secret")

PLAN = b"""\
name: mine
pipelines:
- postgres/jdbc
- {pipeline: postgres/jdbc, label: two, multiples: [1, 2], overrides: {batch.size: 500}}
multiples: [1, 2]
until: {interval_percent: 10, trials: 20}
load: {keys: 10, compression: lz4, acks: 1, linger_ms: 5}
drain: {window_seconds: 6}
prices: {currency: EUR, core_hour: 0.05}
thresholds: {lost: 0, p99_ms: "<1000", two: {connections: "<= 20"}}
"""
STACK = b"""\
kafka: {bootstrap: "k:1", settings: {security.protocol: SASL_SSL, sasl.password: {env: HOME}}}
connect:
  {urls: ["http://c:1"], workers: 2, user: u, password: {file: secret}, variables: {A: b, B_PASSWORD: {env: HOME}}}
elasticsearch: {url: "http://e:1", index: tides, api_key: {env: HOME}}
postgres: {dsn: host=p port=1 dbname=d user=u, password: {file: secret}}
pgbouncer: {dsn: host=p port=2 dbname=pgbouncer user=u}
loadgen: {urls: ["https://l:1"], user: u, password: {file: secret}}
"""
CONNECTOR = b"""{"name": "jdbc", "config": {"connector.class": "io.x", "batch.size": 500, "connection.password": "hush",
"connection.url": "jdbc:postgresql://db:5432/d?user=u&sslmode=require&password=hush", "connection.username": "u"}}"""
PRICES = b"currency: EUR\ncore_hour: 0.05\nmemory_gb_hour: 0.01\nkept_months: 2.5\n"
QUERY = b"""\
asks: what is there
where:
- {field: data.0.t, from: "2026-01-01", before: "2026-02-01"}
- {field: metadata.location, near: {lat: 1, lon: 2, km: 3}}
newest: {by: data.0.t, most: 20}
"""
TOPOLOGY = b"""\
kafka: {nodes: 2, heap: 512m, replication: 2, min_insync_replicas: 1}
connect: {nodes: 2}
elasticsearch: {nodes: 3, shards: 3, replicas: 1}
postgres: {nodes: 2, synchronous: true}
"""
SETTINGS = (
    b"SINKBENCH_TOPOLOGY=topology.yaml\nSINKBENCH_WORKERS=3\n# why\nSINKBENCH_KAFKA_PORT=19092\n"
    b"SINKBENCH_KAFKA_HEAP='768m'\nexport OTHER=\"x ${A}\"\n"
)
CLIENT = b"security.protocol=ssl\n# why\nssl.ca.pem=-----BEGIN\\nx\nsasl.password=a=b\n"
NDJSON = b'{"id": 1, "at": {"place": "Sand"}, "v": [1.5, true]}\n{"id": 2, "at": {"place": "K\xc3\xb6ln"}}\n\n{}\n'
ARRAY = b'[{"id": 1, "at": {"place": "Sand"}},\n {"id": 2}, {"id": 3, "v": "\\u00fc"}]\n'
TABLE = b'id,place,v,ok\n1,"Sand, Bar",1.5,true\n2,"say ""x""\nhere",,false\n3,K\xc3\xb6ln,-2e3,true\n'


@dataclass(frozen=True)
class Reader:
    """A good file (its content is empty if it is part of a run that was kept), and what reads it."""

    file: str
    good: bytes
    read: Callable[[Path], object]
    like: str = ""
    share: float = 1.0

    def path(self, root: Path) -> Path:
        return next(root.glob(self.file))

    @property
    def shown(self) -> str:
        """What a message names."""
        return "samples" if "samples" in self.file else Path(self.file).name.replace("*", "")


def _connector(root: Path) -> None:
    config = read_connector(root / "connectors" / "postgres" / "jdbc.json")
    jdbc_url({key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()})


def _samples(root: Path) -> None:
    found = read_samples(next(root.glob("results/*/samples/*.csv")))
    if isinstance(found, str):
        raise UserError(f"samples {found}")
    course_of(found, 100)


def _dataset(file: str, key: str | None = None) -> Callable[[Path], object]:
    return lambda root: open_dataset(str(root / file), key, most_bytes=1 << 20)


def _run(root: Path) -> None:
    """As `runs` does, which must list a damaged run, and as the others do."""
    (row,) = list_runs(root / "results")
    if row.summary is None:
        assert row.damage
    load_run(root / "results" / row.run)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("world")
    keep_run(root / "results", ("postgres/jdbc",), multiples=(1,), blocks=2, seconds=4)
    (root / "results" / "latest").unlink()
    (root / "connectors" / "postgres").mkdir(parents=True, exist_ok=True)
    (root / "queries").mkdir()
    duckdb.sql("SELECT 1 AS id, 'Sand' AS place, [1.5] AS v").write_parquet(str(root / "mine.parquet"))
    written = [reader for reader in READERS.values() if reader.good]
    for reader in written:
        (root / reader.file).write_bytes(reader.good)
    for reader in written:
        reader.read(root)
    return root


READERS = {
    "plan": Reader("plan.yaml", PLAN, lambda root: load_plan(root / "plan.yaml", root / "connectors"), "yaml"),
    "stack file": Reader("clusters.yaml", STACK, lambda root: load_stack_file(root / "clusters.yaml"), "yaml"),
    "secret": Reader("secret", b"hushhush\n", lambda root: load_stack_file(root / "clusters.yaml")),
    "connector": Reader("connectors/postgres/jdbc.json", CONNECTOR, _connector, "json"),
    "prices": Reader("prices.yaml", PRICES, lambda root: load_prices(root / "prices.yaml"), "yaml"),
    "query": Reader("queries/one.yaml", QUERY, lambda root: load_queries(root / "queries"), "yaml"),
    "topology": Reader("topology.yaml", TOPOLOGY, lambda root: load_topology("topology.yaml", root, CHECKOUT), "yaml"),
    ".env": Reader(".env", SETTINGS, load_settings),
    "client config": Reader("client.properties", CLIENT, lambda root: read_client_config(root / "client.properties")),
    "ndjson": Reader("mine.ndjson", NDJSON, _dataset("mine.ndjson", "at.place")),
    "json array": Reader("mine.json", ARRAY, _dataset("mine.json", "id")),
    "csv": Reader("mine.csv", TABLE, _dataset("mine.csv", "place")),
    # A database is opened for each.
    "parquet": Reader("mine.parquet", b"", _dataset("mine.parquet"), share=0.1),
    "summary": Reader("results/*/summary.json", b"", _run, "json"),
    "trials": Reader("results/*/trials.jsonl", b"", _run),
    "kept plan": Reader("results/*/plan.yaml", b"", _run, "yaml", share=0.3),
    "samples": Reader("results/*/samples/*.csv", b"", _samples),
}
# The user's own records are read by loadgen, whose tests have their own bad files.
RECORDS = ("ndjson", "json array", "csv", "parquet")
# Without a file, or with an empty one, these readers go on.
MAY_BE_EMPTY = ("trials", ".env", "client config")
MAY_BE_MISSING = ("summary", "trials", "query")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


KINDS: dict[str, Callable[[Path], object]] = {
    "folder": lambda path: path.mkdir(),
    "fifo": lambda path: os.mkfifo(path),
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "a terabyte": _sparse,
    "empty": lambda path: path.write_bytes(b""),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 4 + b"\n"),
    "utf-16": lambda path: path.write_bytes('{"a": "b"}\n'.encode("utf-16")),
    "a link to itself": lambda path: path.symlink_to(path),
}


def refused(root: Path, name: str, put: Callable[[Path], object]) -> str:
    """What a reader says of its file once that is something else; as it was afterwards."""
    reader = READERS[name]
    path = reader.path(root)
    kept = path.with_name(f"{path.name}.kept")
    path.rename(kept)
    try:
        put(path)
        with pytest.raises(REFUSED) as error:
            reader.read(root)
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
        kept.rename(path)
    said = str(error.value)
    assert reader.shown in said
    return said


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", [name for name in READERS if name not in RECORDS])
def test_what_is_not_the_expected_file_is_refused_by_its_name(name: str, world: Path) -> None:
    for kind, put in KINDS.items():
        as_none = (kind == "empty" and name in MAY_BE_EMPTY) or (kind == "a link to itself" and name in MAY_BE_MISSING)
        if not as_none:
            # The stack file names the secret three times.
            assert refused(world, name, put).count("\n") <= 2 * (name == "secret"), kind


BAD = {
    # What programs may read differently.
    "json": {
        "deep": "[" * 2_000,
        "nan": '{"format": NaN}',
        "too large": '{"format": 1e999}',
        "many digits": '{"format": ' + "9" * 5000 + "}",
        "twice": '{"format": 1, "format": 1}',
        "half a character": '{"format": "\\ud800"}',
        "list": "[]",
        "cut": '{"format": 1',
    },
    "yaml": {
        "deep": "a: " + "[" * 1_200,
        "itself": "a: &a [*a]",
        "twice": "name: a\nname: b",
        "binary value": "name: !!binary aGk=",
        "python": "a: !!python/object:os.system x",
        "keys": "? [1, 2]\n: 3\nnull: 1\ntrue: 2\n1.5: 3",
        "zero": 'name: "a\\0b"\nplan: "a\\0b"\ncurrency: "a\\0"\nkafka: "\\0"',
        "huge": "a:\n" + "- 1\n" * 100_000,
        "two": "a: 1\n---\nb: 2",
        "half a character": 'name: "\\ud800"\nplan: "\\ud800"\ncurrency: "\\ud800"\nkafka: "\\ud800"',
        "half a character in a key": '"\\ud800": 1',
    },
}


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", [*(name for name in READERS if READERS[name].like and name != "kept plan"), "trials"])
def test_json_and_yaml_that_is_no_such_file_is_refused_in_a_few_lines(name: str, world: Path) -> None:
    like = READERS[name].like or "json"
    for text in BAD[like].values():
        said = refused(world, name, lambda path, text=text: path.write_text(f"{text}\n"))  # type: ignore[misc]
        assert said.count("\n") <= (5 if like == "yaml" else 0)
        assert len(said) < 600 or like == "yaml"


def fuzz(file: Path, files: int, make: Callable[[Random], bytes], judge: Callable[[], None]) -> None:
    """Lets files that are made at random be judged in the place of the good one, and puts that back."""
    good = file.read_bytes()

    @settings(max_examples=max(1, files // FILES_OF_A_SEED))
    @given(st.randoms(use_true_random=True))
    def each(random: Random) -> None:
        for _ in range(min(files, FILES_OF_A_SEED)):
            bad = make(random)
            file.write_bytes(bad)
            try:
                judge()
            except BaseException as error:
                error.add_note(f"of the content {bad!r}")
                raise

    try:
        each()
    finally:
        file.write_bytes(good)


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", [name for name in READERS if name != "secret"])
def test_bad_files_are_taken_or_refused_in_a_few_lines(name: str, world: Path) -> None:
    reader = READERS[name]
    good = reader.path(world).read_bytes()
    content = YAML(typ="safe", pure=True).load(good) if reader.like else None

    def make(random: Random) -> bytes:
        by_values = reader.like and random.random() < 0.5
        return changed_json(random, content, NAMES) if by_values else changed_bytes(random, good)

    def judge() -> None:
        try:
            reader.read(world)
        except REFUSED as error:
            said = str(error)
            assert said
            assert said.count("\n") <= 5, said
            assert len(said) < 20_000, said

    fuzz(reader.path(world), max(FILES_OF_A_SEED, int(OF_READERS * reader.share)), make, judge)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all that a run may have."""
    return keep_run(tmp_path_factory.mktemp("whole") / "results", ("postgres/jdbc",), (1, 2), 2, 4, everything=True)


COMMANDS = {
    "export csv": lambda run: ["export", run, "--format", "csv"],
    "export md": lambda run: ["export", run, "--format", "md"],
    "runs": lambda run: ["runs", "--results", str(Path(run).parent)],
    "compare": lambda run: ["compare", run, run],
    "show": lambda run: ["show", run],
    "show --all": lambda run: ["show", run, "--all"],
    "report": lambda run: ["report", run],
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kept", ["summary.json", "trials.jsonl"])
def test_a_command_takes_a_run_with_other_values_or_refuses_it_in_a_line(
    command: str, kept: str, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *rest = [(whole / kept).read_text()] if kept == "summary.json" else (whole / kept).read_text().splitlines()
    content = json.loads(first)

    def make(random: Random) -> bytes:
        alike = random.random() < 0.7
        bad = changed_values(random, content) if alike else changed_json(random, content, NAMES)
        return "\n".join([bad.decode(), *rest, ""]).encode()

    def judge() -> None:
        assert main(COMMANDS[command](str(whole))) in (0, 2, 3)
        said = capsys.readouterr().err
        assert said.count("\n") <= 1, said

    fuzz(whole / kept, OF_REPORTS if command == "report" else OF_COMMANDS, make, judge)
