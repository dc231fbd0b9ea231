"""A real local stack for the end-to-end tests: its own data and ports, beside a stack that a user may have up."""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg
import pytest

from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT, Settings, load_settings
from sinkbench.sinks import Sink, open_sink
from sinkbench.stack.local import LocalStack
from tests.e2e.races import ALL_FOUR, Quick
from tests.support.browser import Browser, find
from tests.support.commands import QUICKLY_COMPILED, Run, sinkbench_in, started, succeeded
from tests.support.eventclient import Client
from tests.support.trials import quick_plan

OFFSET = 500


@pytest.fixture(scope="package")
def settings() -> Iterator[Settings]:
    """The tests' settings, also in the environment, for the commands that tests start. A path may hold a space."""
    usual = load_settings()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SINKBENCH_STACK", "local")
        patch.setenv("SINKBENCH_DIST", str(usual.dist))
        patch.setenv("SINKBENCH_HOME", str(usual.home / "test stack"))
        patch.setenv("SINKBENCH_JAVA_OPTIONS", QUICKLY_COMPILED)
        patch.setenv("SINKBENCH_PORT_OFFSET", str(usual.port_offset + OFFSET))
        yield load_settings()


@pytest.fixture(scope="package")
def stack(settings: Settings) -> Iterator[LocalStack]:
    """The running stack."""
    stack = LocalStack(settings)
    stack.down()
    succeeded(sinkbench_in(Path.cwd(), "up", timeout=1500))
    yield stack
    stack.down()
    # The logs stay, for whoever asks why a test has failed.
    shutil.rmtree(settings.home / "data")


@pytest.fixture
def database(stack: LocalStack) -> Iterator[psycopg.Connection]:
    """A session of PostgreSQL that began before the test has set anything."""
    with psycopg.connect(stack.endpoints.sinks["postgres"].address, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="package")
def bootstrap(stack: LocalStack) -> str:
    """Kafka's address."""
    return stack.endpoints.kafka


@pytest.fixture
def kafka(stack: LocalStack) -> Kafka:
    """A client of the stack's Kafka."""
    return Kafka(stack.endpoints.kafka)


@pytest.fixture
def connect(stack: LocalStack) -> Iterator[ConnectCluster]:
    """A client of the stack's workers."""
    with ConnectCluster(stack.endpoints.connect.values()) as cluster:
        yield cluster


@pytest.fixture
def topic(kafka: Kafka) -> Iterator[str]:
    """The name of a topic of the test's own, removed after it with all whose names begin so."""
    name = f"test-{uuid.uuid4().hex}"
    yield name
    for each in kafka.topics():
        if each.startswith(name):
            kafka.delete_topic(each)


@pytest.fixture(params=["elasticsearch", "postgres"])
def sink(request: pytest.FixtureRequest, stack: LocalStack) -> Iterator[Sink]:
    """Each of the sinks in turn."""
    with closing(open_sink(request.param, stack.endpoints, CHECKOUT)) as sink:
        yield sink


@pytest.fixture(scope="package")
def quick(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Quick:
    """A race of four pipelines, taken once."""
    folder, news = tmp_path_factory.mktemp("quick"), []
    (folder / "mine.yaml").write_text(quick_plan(*ALL_FOUR, warm_up=3))
    with started(folder, "race", "mine.yaml", "--live-port", "0") as race:
        with Client(race.stdout.readline().removeprefix("live: ").strip()) as client:
            while (found := client.next()) is not None:
                news.append(found)
        output, _ = race.communicate(timeout=400)
    assert race.returncode == 0, output
    return Quick(folder, output, succeeded(sinkbench_in(folder, "show", "--all")).stdout, news)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser, if there is one."""
    if (program := find()) is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    with Browser(program) as opened:
        yield opened


@pytest.fixture
def sinkbench(settings: Settings, tmp_path: Path) -> Run:
    """Runs the command `sinkbench` in a folder of its own and returns what came of it."""
    return partial(sinkbench_in, tmp_path)
