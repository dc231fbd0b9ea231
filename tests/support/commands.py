"""How a test runs the command `sinkbench`."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from sinkbench.cli.main import main
from sinkbench.topology import Topology, needed_bytes

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Options of Java for the tests' stacks: no test needs the last third of a rate, for which Java's second compiler takes
# most of two cores for minutes.
QUICKLY_COMPILED = "-XX:TieredStopAtLevel=1"


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command, in that folder and in the background, its errors among its output.

    Whatever a test does with it, it has ended afterwards. It leads a process group, so that it can be killed with all
    that it has started.
    """
    command = subprocess.Popen(
        [sys.executable, "-m", "sinkbench", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with command:
        try:
            yield command
        finally:
            if command.poll() is None:
                command.terminate()


def sinkbench_in(folder: Path, *arguments: str, timeout: float = 400) -> subprocess.CompletedProcess[str]:
    """Runs the command in that folder."""
    return _run("sinkbench", *arguments, cwd=folder, timeout=timeout)


def loadgen(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a load by the command `loadgen`, which shows no progress."""
    return _run("loadgen", "run", "--no-progress", *arguments, timeout=120)


def _run(module: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def skip_without_memory(topology: Topology) -> None:
    """Skips the test where a stack of that topology would not fit in."""
    if psutil.virtual_memory().available < needed_bytes(topology):
        pytest.skip(f"this topology needs {needed_bytes(topology) / 1e9:.1f} GB of memory")


def succeeded(ended: subprocess.CompletedProcess[Any]) -> subprocess.CompletedProcess[Any]:
    """A command that does what it should; if it does not, the test fails with its output."""
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}"
    return ended


def refuses(ended: subprocess.CompletedProcess[Any]) -> subprocess.CompletedProcess[Any]:
    """A command that cannot do what it is asked; if it does anything else, the test fails with its output."""
    assert ended.returncode == 2, f"{ended.stdout}{ended.stderr}"
    return ended


class Ended(NamedTuple):
    """How a command has ended, and what it has printed."""

    code: int
    out: str
    err: str


class Command:
    """The command, or another program's, in the process of the test."""

    def __init__(self, capsys: pytest.CaptureFixture[str], main: Callable[[list[str]], int] = main) -> None:
        self._capsys, self._main = capsys, main

    def __call__(self, *arguments: object) -> Ended:
        self._capsys.readouterr()
        return Ended(self._main([str(each) for each in arguments]), *self._capsys.readouterr())

    def done(self, *arguments: object) -> str:
        """The output of a command that does what it should."""
        ended = self(*arguments)
        assert ended.code == 0, ended.err
        return ended.out

    def refused(self, *arguments: object) -> str:
        """The line with which a command is refused."""
        ended = self(*arguments)
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1), ended
        return ended.err
