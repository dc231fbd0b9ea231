"""A fault that is a command of the user, and the command that undoes it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from sinkbench.errors import StackError
from sinkbench.secrets import redacted
from sinkbench.trial.names import Names

# Includes the time to connect to a remote host; a longer action belongs in the fault's own seconds.
COMMAND_SECONDS = 60.0


@contextmanager
def commanded(command: str, undo: str, names: Names) -> Iterator[None]:
    """Runs `command` in a shell, and `undo` at the end of the context, also if the command failed.

    Raises StackError, with the last output line, if one fails or times out.
    """
    found = {
        "SINKBENCH_TOPIC": names.topic,
        "SINKBENCH_CONNECTOR": names.connector,
        "SINKBENCH_TARGET": names.target,
    }
    try:
        _run("command", command, found)
    except StackError as failed:
        try:
            _run("undo", undo, found)
        except StackError as also:
            raise StackError(f"{failed}; {also}") from None
        raise
    try:
        yield
    finally:
        _run("undo", undo, found)


def _run(key: str, text: str, variables: Mapping[str, str]) -> None:
    # A background process would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["sh", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            # Ctrl-C must reach only the race, which then undoes the fault.
            start_new_session=True,
        )
        try:
            code = process.wait(COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise StackError(f"'{key}' {text!r} did not end in {COMMAND_SECONDS:g} s, and was killed") from None
        output.seek(0)
        said = output.read().decode(errors="replace").strip().splitlines()
    if code != 0:
        last = f": {redacted(said[-1].strip())}" if said else ""
        raise StackError(f"'{key}' {text!r} ended with exit code {code}{last}")
