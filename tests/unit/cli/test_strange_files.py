"""Files that are not what they should be: every reader says so in one line with the file's name, and none hangs."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadgen.clientconfig import read_client_config
from loadgen.errors import LoadgenError
from sinkbench.cli.main import main
from sinkbench.errors import PlanError, SinkbenchError, StackError, UserError
from sinkbench.plan.connectors import read_connector
from sinkbench.plan.plan import load_plan
from sinkbench.plan.prices import load_prices
from sinkbench.report.samples import read_samples
from sinkbench.runs.reader import load_run
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack.stackfile import load_stack_file
from sinkbench.summary.thresholds import load_thresholds
from sinkbench.topology import load_topology
from sinkbench.yamlfile import to_yaml
from tests.support.samplerun import keep_run

REFUSED = (SinkbenchError, LoadgenError)
LONGEST_SECONDS = 120
CONNECTOR = '{"name": "jdbc", "config": {"connector.class": "x", "batch.size": 500}}'
CLUSTERS = "kafka: {bootstrap: 'k:1'}\nconnect: {urls: ['http://c:1']}\n"


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    def end(*_: object) -> None:
        raise TimeoutError(f"it hangs: more than {LONGEST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LONGEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that somebody may write, or damage."""
    root = tmp_path_factory.mktemp("world")
    keep_run(root / "results", ("postgres/jdbc",), blocks=2, seconds=4)
    (root / "connectors" / "postgres").mkdir(parents=True, exist_ok=True)
    (root / "connectors" / "postgres" / "jdbc.json").write_text(CONNECTOR)
    (root / "plan.yaml").write_text("pipelines: [postgres/jdbc]\n")
    (root / "prices.yaml").write_text("currency: EUR\ncore_hour: 0.05\n")
    (root / "thresholds.yaml").write_text("plan: plan.yaml\ncells: [{cell: postgres/jdbc, lost: {at_most: 0}}]\n")
    (root / "clusters.yaml").write_text(CLUSTERS)
    (root / "secret").write_text("hushhush\n")
    (root / "with_secret.yaml").write_text(
        CLUSTERS + "elasticsearch: {url: 'http://e:1', user: u, password: {file: secret}}\n"
    )
    (root / "client.properties").write_text("security.protocol=ssl\n")
    (root / "topology.yaml").write_text("kafka: {nodes: 3}\n")
    (root / ".env").write_text("SINKBENCH_WORKERS=3\n")
    return root


def run_of(root: Path) -> Path:
    return next(each for each in (root / "results").iterdir() if not each.is_symlink())


def samples_of(root: Path) -> None:
    found = read_samples(next((run_of(root) / "samples").iterdir()))
    if isinstance(found, str):
        raise UserError(f"samples {found}")


def in_run(name: str) -> Callable[[Path], Path]:
    return lambda root: next(run_of(root).glob(name))


def at(name: str) -> Callable[[Path], Path]:
    return lambda root: root / name


READERS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "plan": (at("plan.yaml"), lambda root: load_plan(root / "plan.yaml", root / "connectors")),
    "prices": (at("prices.yaml"), lambda root: load_prices(root / "prices.yaml")),
    "thresholds": (at("thresholds.yaml"), lambda root: load_thresholds(root / "thresholds.yaml", root / "connectors")),
    "stack file": (at("clusters.yaml"), lambda root: load_stack_file(root / "clusters.yaml")),
    "secret": (at("secret"), lambda root: load_stack_file(root / "with_secret.yaml")),
    "connector": (
        at("connectors/postgres/jdbc.json"),
        lambda root: read_connector(root / "connectors" / "postgres" / "jdbc.json"),
    ),
    "client config": (at("client.properties"), lambda root: read_client_config(root / "client.properties")),
    "topology": (at("topology.yaml"), lambda root: load_topology("topology.yaml", root, CHECKOUT)),
    ".env": (at(".env"), load_settings),
    "summary": (in_run("summary.json"), lambda root: load_run(run_of(root))),
    "trials": (in_run("trials.jsonl"), lambda root: load_run(run_of(root))),
    "kept plan": (in_run("plan.yaml"), lambda root: load_run(run_of(root))),
    "kept connector": (in_run("connectors/*/*.json"), lambda root: load_run(run_of(root))),
    "samples": (in_run("samples/*.csv"), samples_of),
}
JSON = ("connector", "summary", "kept connector", "trials")
YAML = ("plan", "prices", "thresholds", "stack file", "topology", "kept plan")
# Without a file these readers go on.
MAY_BE_EMPTY = ("trials", ".env", "client config")
MAY_BE_MISSING = ("summary", "trials")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


KINDS: dict[str, Callable[[Path], object]] = {
    "folder": lambda path: path.mkdir(),
    "fifo": fifo,
    "endless device": endless,
    "a terabyte": sparse,
    "empty": lambda path: path.write_bytes(b""),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 4 + b"\n"),
    "zeros": lambda path: path.write_bytes(b"\0" * 4096 + b"\n"),
    "utf-16": lambda path: path.write_bytes('{"a": "b"}\n'.encode("utf-16")),
    "latin-1": lambda path: path.write_bytes('a: "b\xfcro"\n'.encode("latin-1")),
    "a link to itself": lambda path: path.symlink_to(path),
}


def refused(root: Path, reader: str, put: Callable[[Path], object]) -> str:
    """What a reader says of its file once that is something else; as it was afterwards."""
    find, read = READERS[reader]
    path = find(root)
    kept = path.with_name(f"{path.name}.kept")
    path.rename(kept)
    try:
        put(path)
        with pytest.raises(REFUSED) as error:
            read(root)
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
        kept.rename(path)
    return str(error.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_not_the_file_that_is_looked_for_is_refused_by_its_name(reader: str, kind: str, world: Path) -> None:
    if kind == "empty" and reader in MAY_BE_EMPTY:
        pytest.skip("is as good as none")
    if kind == "a link to itself" and reader in MAY_BE_MISSING:
        pytest.skip("is no file, as after a race that was killed")
    said = refused(world, reader, KINDS[kind])
    name = READERS[reader][0](world).name if reader != "samples" else "samples"
    assert name in said
    assert "\n" not in said


BAD_JSON = {
    "deep": "[" * 10_000,
    "deep and closed": '{"a":' * 500 + "1" + "}" * 500,
    "nan": '{"format": NaN}',
    "infinity": '{"format": -Infinity}',
    "too large": '{"format": 1e999}',
    "many digits": '{"format": ' + "9" * 5000 + "}",
    "twice": '{"format": 1, "format": 1}',
    "half a character": '{"format": "\\ud800"}',
    "list": "[]",
    "number": "7",
    "null": "null",
    "text": '"x"',
    "cut": '{"format": 1',
}


@pytest.mark.parametrize("reader", JSON)
@pytest.mark.parametrize("text", BAD_JSON.values(), ids=BAD_JSON)
def test_json_that_programs_may_read_differently_is_refused(reader: str, text: str, world: Path) -> None:
    if reader == "kept connector" and text in ("[]", "7", "null", '"x"'):
        pytest.skip("is only compared")
    said = refused(world, reader, lambda path: path.write_text(f"{text}\n"))
    assert READERS[reader][0](world).name in said
    assert "\n" not in said
    assert len(said) < 600


BAD_YAML = {
    "deep": "a: " + "[" * 5_000,
    "itself": "a: &a [*a]",
    "twice": "name: a\nname: b",
    "binary value": "name: !!binary aGk=",
    "python": "a: !!python/object:os.system x",
    "list": "- 1",
    "keys": "? [1, 2]\n: 3\nnull: 1\ntrue: 2\n1.5: 3",
    "zero": 'name: "a\\0b"\nplan: "a\\0b"\ncurrency: "a\\0"\nkafka: "\\0"',
    "huge": "a:\n" + "- 1\n" * 1_000_000,
    "two": "a: 1\n---\nb: 2",
    "half a character": 'name: "\\ud800"\nplan: "\\ud800"\ncurrency: "\\ud800"\nkafka: "\\ud800"',
    "half a character in a key": '"\\ud800": 1',
}


@pytest.mark.parametrize("reader", [name for name in YAML if name != "kept plan"])
@pytest.mark.parametrize("text", BAD_YAML.values(), ids=BAD_YAML)
def test_yaml_that_is_no_such_file_is_refused_in_a_few_lines(reader: str, text: str, world: Path) -> None:
    said = refused(world, reader, lambda path: path.write_text(text))
    assert READERS[reader][0](world).name in said
    assert said.count("\n") <= 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"name": "x"}', "an object with name and config"),
        ('{"name": "x", "config": []}', "an object with name and config"),
        ('{"name": "x", "config": {"a": {"b": 1}}}', "config.a is no text"),
    ],
)
def test_a_connector_file_that_connect_would_not_take_is_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "jdbc.json"
    file.write_text(text)
    with pytest.raises(PlanError, match=f"jdbc.json: not a connector file.*{said}"):
        read_connector(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SINKBENCH_WORKERS=1\nSINKBENCH_WORKERS=2\n", ":2: SINKBENCH_WORKERS stands there twice"),
        ("SINKBENCH_WORKERS=1\n= what\n", ":2: is not NAME=value"),
    ],
)
def test_a_settings_file_that_could_be_read_in_two_ways_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(text)
    with pytest.raises(SinkbenchError) as error:
        load_settings(tmp_path)
    assert said in str(error.value)


def test_a_secret_of_an_unknown_account_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(CLUSTERS + "elasticsearch: {url: 'http://e:1', user: u, password: {file: ~nobody-here/x}}\n")
    with pytest.raises(StackError, match=r"mine.yaml:3: .*~nobody-here/x: there is no such account"):
        load_stack_file(file)


def test_a_pipe_of_another_command_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"currency: EUR\ncore_hour: 0.05\n")
    os.close(writing)
    assert load_prices(Path(f"/dev/fd/{reading}")).currency == "EUR"
    os.close(reading)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_may_not_be_read_is_named(reader: str, world: Path) -> None:
    assert "ermission" in refused(world, reader, lambda path: path.touch(mode=0o000))


def told(read: Callable[[Path], object], root: Path) -> str:
    """How a reader refuses its file; empty if it takes it."""
    try:
        read(root)
    except REFUSED as error:
        return str(error)
    return ""


# What YAML can hold, in the places of a plan's and of a stack file's keys.
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *("name", "pipelines", "mode", "multiples", "trials", "until", "sustain", "capacity", "load", "drain", "seed"),
        *("prices", "kafka", "connect", "elasticsearch", "postgres", "loadgens", "loadgen", "currency"),
        *("core_hour", "plan", "cells", "limits", "probe_interval_ms", "tables"),
    ]
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.dictionaries(KEYS, VALUES, max_size=5))
@pytest.mark.parametrize("reader", [name for name in YAML if name != "kept plan"])
def test_whatever_yaml_holds_a_reader_takes_it_or_refuses_it(
    reader: str, content: dict[str, object], world: Path, tmp_path: Path
) -> None:
    find, read = READERS[reader]
    path = find(world)
    before = path.read_bytes()
    try:
        path.write_text(to_yaml(content), encoding="utf-8")
        said = told(read, world)
    finally:
        path.write_bytes(before)
    assert not said or path.name in said or "plan.yaml" in said


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), value=ANYTHING)
@pytest.mark.parametrize("name", ["summary.json", "trials.jsonl"])
def test_a_value_of_a_run_that_is_another_is_taken_by_every_reader_or_refused(
    name: str, data: st.DataObject, value: object, world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(world)
    file = run / name
    before = file.read_bytes()
    first, _, rest = before.decode().partition("\n") if name == "trials.jsonl" else (before.decode(), "", "")
    content = json.loads(first)
    place = content
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
            place = inner
            continue
        place[key] = value
        break
    try:
        file.write_text(json.dumps(content) + "\n" + rest)
        for command in (["export", str(run), "--format", "csv"], ["compare", str(run), str(run)]):
            assert main(command) in (0, 2)
            said = capsys.readouterr().err
            assert said.count("\n") <= 1, said
    finally:
        file.write_bytes(before)
