"""The bytes that processes have sent and received through TCP, as the kernel counts them for each connection.

Processes of one machine talk over the loopback interface, which has no counters by process. Connections have: `ss` of
iproute2 tells them, and `/proc` tells which process holds which connection.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sinkbench.stack import NetworkBytes
from sinkbench.stack.tools import find_ss

__all__ = ["Connection", "TcpCounters", "connections_of"]

OPTIONS = ("--tcp", "--numeric", "--info", "--extended", "--no-header", "--oneline", "state", "established")
TIMEOUT_SECONDS = 10
NOTHING = NetworkBytes(0.0, 0.0)
_INODE, _COOKIE = re.compile(r"\bino:(\d+)"), re.compile(r"\bsk:([0-9a-f]+)")
_RECEIVED, _SENT = re.compile(r"\bbytes_received:(\d+)"), re.compile(r"\bbytes_acked:(\d+)")
# What `ss` says of every connection that the kernel tells of: its timeout for sending again.
_TOLD = re.compile(r"\brto:")
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Connection(NamedTuple):
    """One end of a TCP connection.

    Attributes:
        cookie: what tells it from every other end since the machine has started.
        inode: how `/proc` names it.
        received: bytes so far.
        sent: bytes so far that the other end has acknowledged.
    """

    cookie: str
    inode: str
    received: int
    sent: int


def connections_of(listing: str) -> Iterator[Connection]:
    """The connections of a listing by `ss` with one line for each; those of which the kernel told nothing are left out.

    What has carried nothing yet is counted as 0.
    """
    for line in listing.splitlines():
        inode, cookie = _INODE.search(line), _COOKIE.search(line)
        if inode is not None and cookie is not None and _TOLD.search(line):
            received, sent = (
                0 if found is None else int(found[1]) for found in (_RECEIVED.search(line), _SENT.search(line))
            )
            yield Connection(cookie[1], inode[1], received, sent)


class TcpCounters:
    """What the processes of each service have received and sent, since they were first asked for.

    A connection that was opened and closed between two readings was never seen, and is in no count.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """`proc` is where the kernel shows processes."""
        self._proc = proc
        self._open: dict[str, tuple[str, Connection]] = {}
        self._closed: dict[str, NetworkBytes] = {}

    def read(self, pids: Mapping[str, Sequence[int]]) -> dict[str, NetworkBytes | None]:
        """Bytes so far of each service whose processes are given, the first of them first.

        Returns:
            None of a service whose first process is gone, or may not be looked at; nothing where `ss` fails, or the
            kernel tells it nothing of any connection.

        Raises:
            StackError: there is no `ss`.
        """
        command = [str(find_ss()), *OPTIONS]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_SECONDS, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return {}
        found = list(connections_of(done.stdout))
        return self.add(found, pids) if found or not done.stdout else {}

    def add(
        self, connections: Iterable[Connection], pids: Mapping[str, Sequence[int]]
    ) -> dict[str, NetworkBytes | None]:
        """As `read`, of connections that are listed already."""
        listed = {each.cookie: each for each in connections}
        for cookie in self._open.keys() - listed.keys():
            # What a connection had carried when it was closed stays counted.
            name, last = self._open.pop(cookie)
            self._closed[name] = _sum(self._closed.get(name, NOTHING), last)
        holders, hidden = self._holders(pids)
        for cookie, each in listed.items():
            known = self._open.get(cookie)
            if (holder := holders.get(each.inode) if known is None else known[0]) is not None:
                self._open[cookie] = holder, each
        return {name: None if name in hidden else self._total(name) for name in pids}

    def _total(self, name: str) -> NetworkBytes:
        carried = (each for holder, each in self._open.values() if holder == name)
        return _sum(self._closed.get(name, NOTHING), *carried)

    def _holders(self, pids: Mapping[str, Sequence[int]]) -> tuple[dict[str, str], set[str]]:
        """The service that holds each socket, by its inode; and the services that cannot be seen."""
        holders: dict[str, str] = {}
        hidden = set()
        for name, (first, *others) in pids.items():
            try:
                holders |= dict.fromkeys(self._sockets(first), name)
                for pid in others:
                    # A child may end at any time.
                    with suppress(FileNotFoundError):
                        holders |= dict.fromkeys(self._sockets(pid), name)
            except OSError:
                hidden.add(name)
        return holders, hidden

    def _sockets(self, pid: int) -> Iterator[str]:
        """The inodes of a process's sockets. Raises OSError if it has ended, or may not be looked at."""
        for file in (self._proc / str(pid) / "fd").iterdir():
            with suppress(FileNotFoundError):
                if (found := _SOCKET.match(str(file.readlink()))) is not None:
                    yield found[1]


def _sum(*parts: NetworkBytes | Connection) -> NetworkBytes:
    return NetworkBytes(sum(each.received for each in parts), sum(each.sent for each in parts))
