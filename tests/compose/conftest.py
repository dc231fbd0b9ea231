"""The real containers: a copy of this checkout, in a path with a space, as a compose project of its own.

Skipped where no engine can be used; with TESTS_NEED_DOCKER set, as CI has it, that is a failure.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack.compose import ComposeStack
from sinkbench.stack.engine import DockerEngine
from tests.support.commands import QUICKLY_COMPILED, Run, sinkbench_in, succeeded
from tests.support.latest import summary_of
from tests.support.trials import quick_plan

from .composed import OWNER, PROJECT, Raced, compose_in, log_with

# Beside those of the local stack of tests/e2e, so that either may come first.
PORTS = {"KAFKA": 19692, "ELASTICSEARCH": 19750, "POSTGRES": 15982, "PGBOUNCER": 16982}
# A check of a worker that fails must show within a trial. Each takes a tenth of a second of CPU.
USUAL = '{ <<: *health, test: [CMD, curl, -fsS, -o, /dev/null, "http://127.0.0.1:8083/connectors"] }'
OFTEN = USUAL.replace("test:", "interval: 2s, test:")


@pytest.fixture(scope="session", autouse=True)
def engine() -> DockerEngine:
    """The machine's Docker engine."""
    try:
        ComposeStack(load_settings())
        return DockerEngine(PROJECT)
    except StackError as error:
        if os.environ.get("TESTS_NEED_DOCKER"):
            raise
        pytest.skip(f"no usable Docker engine: {error}")


# Of the package: the containers must be gone before other tests measure anything.
@pytest.fixture(scope="package")
def checkout(engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of what the checkout holds, which tests may change; whatever of it runs in the end is removed."""
    copy = tmp_path_factory.mktemp("compose") / "a checkout"
    listed = subprocess.run(
        ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (CHECKOUT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, copy / name)
    text = (copy / "docker-compose.yml").read_text()
    assert USUAL in text
    (copy / "docker-compose.yml").write_text(text.replace(USUAL, OFTEN))
    (copy / "plans" / "small.yaml").write_text(quick_plan("elasticsearch/camel-bulk", warm_up=3))
    with pytest.MonkeyPatch.context() as patch:
        # A setting of other tests would give `sinkbench` other ports than `docker compose`, and so other containers.
        for name in [name for name in os.environ if name.startswith("SINKBENCH_")]:
            patch.delenv(name)
        patch.setenv("COMPOSE_PROJECT_NAME", PROJECT)
        patch.setenv("SINKBENCH_PLAN", "plans/small.yaml")
        patch.setenv("SINKBENCH_STACK", "compose")
        patch.setenv("SINKBENCH_JAVA_OPTIONS", QUICKLY_COMPILED)
        for name, port in PORTS.items():
            patch.setenv(f"SINKBENCH_{name}_PORT", str(port))
        if os.geteuid() == 0:
            for path in [copy, *copy.rglob("*")]:
                os.chown(path, OWNER, OWNER)
        try:
            yield copy
        finally:
            compose_in(copy, "down", "--volumes", "--remove-orphans", "--rmi", "all")


@pytest.fixture
def compose(checkout: Path) -> Run:
    """Runs `docker compose` in the copy, as a user does."""
    return partial(compose_in, checkout)


@pytest.fixture
def sinkbench(checkout: Path) -> Run:
    """Runs the command `sinkbench` of the copy, on this machine, and returns what came of it."""
    return partial(sinkbench_in, checkout)


@pytest.fixture(scope="package")
def raced(checkout: Path) -> Raced:
    """What `docker compose up --detach --wait` comes to when its race has ended."""
    succeeded(compose_in(checkout, "up", "--build", "--detach", "--wait", timeout=1500))
    log = log_with(checkout, "the race has ended with exit code", 400)
    assert "the race has ended with exit code 0" in log, log
    return Raced(log, summary_of(checkout))


@pytest.fixture
def stack(raced: Raced, checkout: Path, compose: Run, monkeypatch: pytest.MonkeyPatch) -> ComposeStack:
    """The running containers, all of them well, with three workers, and no race on them."""
    with monkeypatch.context() as patch:
        # Whoever names no plan asks for no race.
        patch.setenv("SINKBENCH_PLAN", "")
        succeeded(compose("up", "--detach", "--wait", "--scale", "connect=3", "--scale", "loadgen=1"))
    return ComposeStack(load_settings(checkout), checkout)
