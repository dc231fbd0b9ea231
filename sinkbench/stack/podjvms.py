"""CPU time of the parts of JVMs in pods, which no metric of Kubernetes has: a shell in each pod's first container reads
its threads whenever it is asked, and ends with its connection."""

import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

from kubernetes.stream.ws_client import WSClient
from websocket import WebSocketException

from sinkbench.errors import StackError
from sinkbench.stack.meter import COMPILER, part_of
from sinkbench.stack.operators import Object, name_of
from sinkbench.stack.processes import cpu_seconds

COMMAND = "while read -r _; do cat /proc/[0-9]*/task/[0-9]*/stat 2>/dev/null; echo .; done"
ANSWER_SECONDS, RETRY_SECONDS = 0.3, 60.0
_END = ".\n"
_THREAD = re.compile(r"^(\d+) \((.*)\) ")


@dataclass
class _Shell:
    """The latest CPU seconds of each thread that has a part stay counted when it has ended."""

    client: WSClient
    is_asked: bool = False
    text: str = ""
    used: dict[str, tuple[str, float]] = field(default_factory=dict)

    def ask(self) -> None:
        # What was late is still to come.
        if not self.is_asked:
            self.client.write_stdin("\n")
        self.is_asked = True

    def answer(self, until: float) -> dict[str, float] | None:
        """CPU seconds by part; None if there is no answer until then. OSError without a shell or a JVM."""
        while not self.text.endswith(_END):
            if (left := until - time.monotonic()) <= 0:
                return None
            self.client.update(left)
            self.text += self.client.read_stdout()
            if not self.client.is_open():
                raise ConnectionError("the shell has ended")
        lines, self.text, self.is_asked = self.text.splitlines(), "", False
        # The client keeps all that it has read until then.
        self.client.read_all()
        for line in lines:
            if (thread := _THREAD.match(line)) and (part := part_of(thread[2])):
                self.used[thread[1]] = part, cpu_seconds(line.encode(), ended_children=False)
        parts: dict[str, float] = {}
        for part, seconds in self.used.values():
            parts[part] = parts.get(part, 0.0) + seconds
        if COMPILER not in parts:
            raise ConnectionError("there is no JVM")
        return parts


class PodJvms:
    def __init__(self, open_shell: Callable[[Object], WSClient]) -> None:
        """`open_shell` runs COMMAND in a pod; it may raise StackError."""
        self._open = open_shell
        self._shells: dict[str, _Shell] = {}
        self._not_before: dict[str, float] = {}
        self._one_reader = Lock()

    def seconds(self, pods: Iterable[Object]) -> dict[str, dict[str, float]]:
        """CPU seconds so far by part and pod, of each with a JVM whose shell answers at once."""
        there = {name_of(pod): pod for pod in pods}
        with self._one_reader:
            for gone in self._shells.keys() - there.keys():
                self._end(gone)
            for name in there:
                self._try(name, lambda name: self._ask(name, there[name]))
            until, found = time.monotonic() + ANSWER_SECONDS, dict[str, dict[str, float] | None]()
            for pod in list(self._shells):
                self._try(pod, lambda pod: found.update({pod: self._shells[pod].answer(until)}))
        return {pod: parts for pod, parts in found.items() if parts is not None}

    def _ask(self, name: str, pod: Object) -> None:
        if name not in self._shells and time.monotonic() >= self._not_before.get(name, 0.0):
            self._shells[name] = _Shell(self._open(pod))
        if name in self._shells:
            self._shells[name].ask()

    def _try(self, pod: str, act: Callable[[str], None]) -> None:
        try:
            act(pod)
        except (StackError, OSError, WebSocketException):
            self._not_before[pod] = time.monotonic() + RETRY_SECONDS
            self._end(pod)

    def _end(self, pod: str) -> None:
        if (shell := self._shells.pop(pod, None)) is not None:
            with suppress(OSError, WebSocketException):
                # As `close`, without waiting for an answer.
                shell.client.sock.shutdown()
