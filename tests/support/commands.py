"""How a test runs the command `sinkbench`."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

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
