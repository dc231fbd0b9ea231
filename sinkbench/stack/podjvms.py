"""CPU time of the parts of JVMs in pods, which no metric of Kubernetes has: a shell in each pod's first container reads
its threads whenever it is asked, and ends with its connection."""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from kubernetes.stream.ws_client import WSClient
from websocket import WebSocketException

from sinkbench.errors import StackError
from sinkbench.stack.assembly import at_once
from sinkbench.stack.meter import COMPILER, part_of
from sinkbench.stack.operators import Object, name_of
from sinkbench.stack.processes import cpu_seconds

COMMAND = "while read -r _; do cat /proc/[0-9]*/task/[0-9]*/stat 2>/dev/null; echo .; done"
ANSWER_SECONDS, RETRY_SECONDS = 0.3, 10.0
_END = ".\n"
_THREAD = re.compile(r"^(\d+) \((.*)\) ")


@dataclass
class _Shell:
    """The latest CPU seconds of each thread that has a part stay counted when it has ended."""

    client: WSClient
    text: str = ""
    used: dict[str, tuple[str, float]] = field(default_factory=dict)

    def answer(self) -> dict[str, float] | None:
        """CPU seconds by part; None without an answer in time. OSError without a shell, StackError without a JVM."""
        # Always: the client does not see what TLS has already decrypted until more comes.
        self.client.write_stdin("\n")
        until = time.monotonic() + ANSWER_SECONDS
        while not self.text.endswith(_END) and (left := until - time.monotonic()) > 0:
            self.client.update(left)
            self.text += self.client.read_all()
            if not self.client.is_open():
                raise ConnectionError("the shell has ended")
        whole, end, self.text = self.text.rpartition(_END)
        if not end:
            return None
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
        """`open_shell` runs COMMAND in a pod until its result is forgotten; it may raise StackError."""
        self._open = open_shell
        self._shells: dict[str, _Shell] = {}
        self._not_before: dict[str, float] = {}
        self._waits: dict[str, float] = {}
        self._one_reader = Lock()

    def seconds(self, pods: Iterable[Object]) -> dict[str, dict[str, float]]:
        """CPU seconds so far by part and pod, of each with a JVM whose shell answers at once."""
        there = {pod["metadata"]["uid"]: pod for pod in pods}
        with self._one_reader:
            self._shells = {uid: shell for uid, shell in self._shells.items() if uid in there}
            due = [uid for uid in there if time.monotonic() >= self._not_before.get(uid, 0.0)]
            answers = at_once({uid: partial(self._ask, uid, there[uid]) for uid in due})
        return {name_of(there[uid]): parts for uid, parts in answers.items() if parts is not None}

    def _ask(self, uid: str, pod: Object) -> dict[str, float] | None:
        """None if that fails: it is tried again, after twice as long each time, as a pod may have no JVM or shell."""
        try:
            if uid not in self._shells:
                self._shells[uid] = _Shell(self._open(pod))
            return self._shells[uid].answer()
        except (OSError, WebSocketException, StackError):
            self._waits[uid] = 2 * self._waits.get(uid, RETRY_SECONDS / 2)
            self._not_before[uid] = time.monotonic() + self._waits[uid]
        self._shells.pop(uid, None)
        return None
