"""A load generator as a child process, for a stack in which none runs as a service."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress

import httpx

from loadgen.clientconfig import format_client_config
from loadgen.errors import OptionsError
from sinkbench.errors import StackError

__all__ = ["LoadgenChild"]

START_SECONDS = 60.0
# Longer than a load that is going on takes to end.
END_SECONDS = 12.0
ANSWER_SECONDS = 5.0
LAST_SECONDS = 2.0
SAYS = "loadgen: listening on "
LAST_BYTES = 4_000


class LoadgenChild:
    """A load generator that lives no longer than this process, whatever becomes of it: it ends when its input does."""

    def __init__(self, kafka_settings: Mapping[str, str]) -> None:
        """Starts it, and returns when it answers.

        Args:
            kafka_settings: further settings of its Kafka clients. They go through a pipe: whoever lists processes sees
                their arguments, and a file may stay behind.

        Raises:
            StackError: it cannot be started.
        """
        try:
            settings = format_client_config(kafka_settings)
        except OptionsError as error:
            raise StackError(str(error)) from None
        # A file, since nobody reads along; without a name, so it is gone with the last who has it open.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        reading, writing = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*(sys.executable, "-m", "loadgen", "serve", "--listen", "127.0.0.1:0", "--exit-on-eof"),
                 *("--client-config", f"/dev/fd/{reading}")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                pass_fds=(reading,),
                # A Ctrl-C is for the controller, which then ends its load generator itself.
                start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(writing)
            self._errors.close()
            raise
        finally:
            os.close(reading)
        try:
            with os.fdopen(writing, "wb", buffering=0) as pipe:
                _write(pipe.fileno(), settings.encode())
            self.url = self._await_address()
        except BaseException:
            self.close()
            raise

    def answers(self) -> bool:
        """Whether it is there. (A process that was killed goes bit by bit: its ports first, its exit code last.)"""
        try:
            return httpx.get(f"{self.url}/health", trust_env=False, timeout=ANSWER_SECONDS).is_success
        except httpx.HTTPError:
            return False

    def last_words(self) -> str:
        """How it ended, for a person: the last line that it wrote to its standard error, or its exit code."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_SECONDS)
        size = os.fstat(self._errors.fileno()).st_size
        # Not by read(), which would move the place where the child writes.
        text = os.pread(self._errors.fileno(), LAST_BYTES, max(0, size - LAST_BYTES)).decode(errors="replace")
        lines = text.strip().splitlines()
        if lines:
            return lines[-1].removeprefix("loadgen: ")
        code = self._process.poll()
        return "it lives, but does not answer" if code is None else f"exit code {code}"

    def close(self) -> None:
        """Ends it; it can be called again."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _await_address(self) -> str:
        if self._process.stdout is None:
            raise RuntimeError("a process with pipes has no pipes")
        output = self._process.stdout.fileno()
        give_up = time.monotonic() + START_SECONDS
        said = b""
        while not said.endswith(b"\n"):
            if not select.select([output], [], [], max(0, give_up - time.monotonic()))[0]:
                raise StackError(f"the load generator did not start within {START_SECONDS:g} s; is the machine busy?")
            chunk = os.read(output, 1_000)
            if not chunk:
                raise StackError(f"the load generator could not be started: {self.last_words()}")
            said += chunk
        return said.decode().strip().removeprefix(SAYS)


def _write(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:
        # It has ended; why is told when its address does not come.
        pass
