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
from sinkbench.errors import ServiceError, StackError
from sinkbench.services.http import http_errors

__all__ = ["LoadgenChild"]

START_SECONDS = 60.0
# Longer than a running load takes to end.
END_SECONDS = 12.0
ANSWER_SECONDS = 5.0
LAST_SECONDS = 2.0
SAYS = "loadgen: listening on "
LAST_BYTES = 4_000


class LoadgenChild:
    """A load generator that never outlives this process, since it ends when its standard input closes."""

    def __init__(self, kafka_settings: Mapping[str, str]) -> None:
        """Starts it with these further settings of its Kafka clients, and returns when it answers.

        Raises StackError if it cannot be started.
        """
        try:
            settings = format_client_config(kafka_settings)
        except OptionsError as error:
            raise StackError(str(error)) from None
        # A file, since nobody reads a pipe meanwhile; it has no name and vanishes when it is closed.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        # Secret settings go through a pipe: arguments are visible in process lists, and a file may stay behind.
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
                # Ctrl-C is for the controller, which ends its load generator itself.
                start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(writing)
            self._errors.close()
            raise
        finally:
            os.close(reading)
        try:
            # If it has ended, `_await_address` reports why.
            with suppress(BrokenPipeError), os.fdopen(writing, "wb") as pipe:
                pipe.write(settings.encode())
            self.url = self._await_address()
        except BaseException:
            self.close()
            raise

    def answers(self) -> bool:
        """Whether it answers. (A killed process closes its ports before it has an exit code.)"""
        try:
            with http_errors():
                return httpx.get(f"{self.url}/health", trust_env=False, timeout=ANSWER_SECONDS).is_success
        except ServiceError:
            return False

    def last_words(self) -> str:
        """How it ended, for a person: the last line of its standard error, or its exit code."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_SECONDS)
        size = os.fstat(self._errors.fileno()).st_size
        # Not read(), which would move the file position that the child shares.
        text = os.pread(self._errors.fileno(), LAST_BYTES, max(0, size - LAST_BYTES)).decode(errors="replace")
        lines = text.strip().splitlines()
        if lines:
            return lines[-1].removeprefix("loadgen: ")
        code = self._process.poll()
        return "it lives, but does not answer" if code is None else f"exit code {code}"

    def close(self) -> None:
        """Ends it. May be called again."""
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
