"""CPU time of the parts of JVMs in pods, which no metric of Kubernetes has: a shell in each pod's first container reads
its threads whenever it is asked, and ends with its connection."""

import math
import re
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TypeVar

from kubernetes.stream.ws_client import WSClient
from websocket import WebSocketException

from sinkbench.errors import StackError
from sinkbench.stack.meter import COMPILER, part_of
from sinkbench.stack.operators import Object, name_of
from sinkbench.stack.processes import cpu_seconds

COMMAND = "while read -r _; do cat /proc/[0-9]*/task/[0-9]*/stat 2>/dev/null; echo .; done"
ANSWER_SECONDS, RETRY_SECONDS = 0.3, 10.0
MOST_AT_ONCE = 16
_END = ".\n"
T = TypeVar("T")
_THREAD = re.compile(r"^(\d+) \((.*)\) ")


@dataclass
class _Shell:
    """The latest CPU seconds of each thread that has a part stay counted when it has ended."""

    client: WSClient
    text: str = ""
    used: dict[str, tuple[str, float]] = field(default_factory=dict)

    def answer(self, until: float) -> dict[str, float] | None:
        """CPU seconds by part; None without an answer until then. OSError without a shell, StackError without a JVM."""
        while not self.text.endswith(_END) and (left := until - time.monotonic()) > 0:
            self.client.update(left)
            self.text += self.client.read_stdout(timeout=0)
            if not self.client.is_open():
                raise ConnectionError("the shell has ended")
        whole, end, self.text = self.text.rpartition(_END)
        if not end:
            self.text = whole + self.text
            return None
        # The client keeps all that it has read until then.
        self.client.read_all()
        for line in whole.splitlines():
            if (thread := _THREAD.match(line)) and (part := part_of(thread[2])):
                self.used[thread[1]] = part, cpu_seconds(line.encode(), ended_children=False)
        parts: dict[str, float] = {}
        for part, seconds in self.used.values():
            parts[part] = parts.get(part, 0.0) + seconds
        if COMPILER not in parts:
            raise StackError("there is no JVM")
        return parts


class PodJvms:
    def __init__(self, open_shell: Callable[[Object], WSClient]) -> None:
        """`open_shell` runs COMMAND in a pod; it may raise StackError."""
        self._open = open_shell
        self._shells: dict[str, _Shell] = {}
        self._not_before: dict[str, float] = {}
        self._one_reader = Lock()
        weakref.finalize(self, _end_all, self._shells)

    def seconds(self, pods: Iterable[Object]) -> dict[str, dict[str, float]]:
        """CPU seconds so far by part and pod, of each with a JVM whose shell answers at once."""
        there = {pod["metadata"]["uid"]: pod for pod in pods}
        with self._one_reader:
            for gone in self._shells.keys() - there.keys():
                self._end(gone)
            closed = [uid for uid in there.keys() - self._shells if time.monotonic() >= self._not_before.get(uid, 0.0)]
            with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
                list(pool.map(lambda uid: self._try(uid, partial(self._start, there[uid])), closed))
            for uid, shell in list(self._shells.items()):
                # Always: the client does not see what TLS has already decrypted until more comes.
                self._try(uid, partial(shell.client.write_stdin, "\n"))
            until = time.monotonic() + ANSWER_SECONDS
            answers = {uid: self._try(uid, partial(shell.answer, until)) for uid, shell in list(self._shells.items())}
        return {name_of(there[uid]): parts for uid, parts in answers.items() if parts is not None}

    def _start(self, pod: Object) -> None:
        self._shells[pod["metadata"]["uid"]] = _Shell(self._open(pod))

    def _try(self, uid: str, act: Callable[[], T]) -> T | None:
        """None if that fails: then it is tried again later, in a pod that may run a shell and has a JVM."""
        try:
            return act()
        except (OSError, WebSocketException):
            self._not_before[uid] = time.monotonic() + RETRY_SECONDS
        except StackError:
            self._not_before[uid] = math.inf
        self._end(uid)
        return None

    def _end(self, uid: str) -> None:
        _end_all({uid: self._shells.pop(uid)} if uid in self._shells else {})


def _end_all(shells: Mapping[str, _Shell]) -> None:
    for shell in shells.values():
        with suppress(OSError, WebSocketException):
            # As `close`, without waiting for an answer.
            shell.client.sock.shutdown()
