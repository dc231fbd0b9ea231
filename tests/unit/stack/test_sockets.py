"""Bytes by process: of a listing by `ss` that was made up, and of connections of this process."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from sinkbench.stack import NetworkBytes
from sinkbench.stack.sockets import Connection, TcpCounters, connections_of

LISTING = """\
0 0 127.0.0.1:19092 127.0.0.1:52000 timer:(keepalive,10sec,0) ino:501 sk:1a uid:7 cgroup:/ <-> ts sack rto:204 \
bytes_sent:4712 bytes_acked:4713 bytes_received:3320 segs_out:8
0 0 [::ffff:127.0.0.1]:52000 [::ffff:127.0.0.1]:19092 ino:502 sk:1b <-> ts sack rto:204 segs_out:0
0 0 127.0.0.1:1 127.0.0.1:2 timer:(timewait,10sec,0)
"""


def holds(proc: Path, pid: int, *inodes: str) -> None:
    """A process of these sockets, as the kernel shows it."""
    folder = proc / str(pid) / "fd"
    folder.mkdir(parents=True, exist_ok=True)
    for number, inode in enumerate(inodes):
        (folder / str(number)).symlink_to(f"socket:[{inode}]")
    (folder / "99").symlink_to("/dev/null")


def test_a_listing_tells_who_carried_what() -> None:
    assert list(connections_of(LISTING)) == [Connection("1a", "501", 3320, 4713), Connection("1b", "502", 0, 0)]


def test_a_connection_counts_for_the_service_whose_process_holds_it(tmp_path: Path) -> None:
    holds(tmp_path, 10, "501")
    holds(tmp_path, 20, "502", "503")
    counters = TcpCounters(tmp_path)
    opened = [Connection("a", "501", 5, 6), Connection("b", "502", 1, 2), Connection("c", "503", 10, 20)]
    pids = {"kafka": [10], "connect-1": [20, 4711]}
    assert counters.add([*opened, Connection("d", "999", 7, 7)], pids) == {
        "kafka": NetworkBytes(5, 6),
        "connect-1": NetworkBytes(11, 22),
    }


def test_what_a_closed_connection_carried_stays_counted(tmp_path: Path) -> None:
    holds(tmp_path, 10, "501", "502")
    counters = TcpCounters(tmp_path)
    counters.add([Connection("a", "501", 5, 6)], {"kafka": [10]})
    # The kernel gives an inode's number anew; the cookie is another one.
    later = [Connection("b", "501", 1, 1), Connection("c", "502", 2, 2)]
    assert counters.add(later, {"kafka": [10]}) == {"kafka": NetworkBytes(8, 9)}
    holds(tmp_path, 20)
    assert counters.add([], {"kafka": [10], "postgres": [20]}) == {
        "kafka": NetworkBytes(8, 9),
        "postgres": NetworkBytes(0, 0),
    }


def test_a_service_that_is_gone_is_not_known_and_not_0(tmp_path: Path) -> None:
    holds(tmp_path, 10, "501")
    counters = TcpCounters(tmp_path)
    carried = [Connection("a", "501", 5, 6)]
    assert counters.add(carried, {"kafka": [10, 11], "postgres": [12]}) == {
        "kafka": NetworkBytes(5, 6),
        "postgres": None,
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look at everything")
def test_a_service_that_may_not_be_looked_at_is_not_known_and_not_0() -> None:
    assert TcpCounters().add([], {"init": [1]}) == {"init": None}


@pytest.mark.parametrize("does", ["exit 1", "echo '0 0 127.0.0.1:1 127.0.0.1:2 ino:501 sk:1a'"])
def test_a_listing_that_fails_or_counts_nothing_tells_nothing(
    does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ss").write_text(f"#!/bin/sh\n{does}\n")
    (tmp_path / "ss").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert TcpCounters().read({"kafka": [os.getpid()]}) == {}


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss of iproute2")
def test_the_kernel_counts_what_this_process_sends() -> None:
    counters = TcpCounters()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        taken, _ = server.accept()
        with taken:
            before = counters.read({"me": [os.getpid()]})["me"]
            assert before is not None
            client.sendall(b"x" * 100_000)
            left = 100_000
            while left:
                left -= len(taken.recv(left))
            after = counters.read({"me": [os.getpid()]})["me"]
            assert after is not None
    assert after.received - before.received == 100_000
    assert after.sent - before.sent >= 100_000
