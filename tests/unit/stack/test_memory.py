"""What the processes of a service hold of the machine's memory, by what the kernel says of them."""

import os
from pathlib import Path

import psutil
import pytest

from sinkbench.stack.memory import Resident, resident_bytes, resident_of, together

BACKEND = b"""\
Name:	postgres
State:	S (sleeping)
VmRSS:	   42800 kB
RssAnon:	    3396 kB
RssFile:	   14380 kB
RssShmem:	   25024 kB
Threads:	1
"""
ZOMBIE = b"Name:\tpostgres\nState:\tZ (zombie)\nThreads:\t1\n"
KB = 1024


def test_own_pages_are_distinguished_from_those_of_files_and_from_shared_memory() -> None:
    assert resident_of(BACKEND) == Resident(own=3396 * KB, files=14380 * KB, shared=25024 * KB)
    assert resident_of(ZOMBIE) is None


def test_what_processes_share_is_counted_once() -> None:
    backend = Resident(own=3, files=10, shared=100)
    assert together([backend]) == 113
    assert together([backend, backend, Resident(own=1, files=2, shared=120)]) == 3 + 3 + 1 + 10 + 120
    assert together([]) is None


def test_processes_that_have_ended_hold_nothing(tmp_path: Path) -> None:
    for pid, text in ((1, BACKEND), (2, BACKEND), (3, ZOMBIE)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_bytes(text)
    assert resident_bytes([1, 2, 3, 4], tmp_path) == (2 * 3396 + 14380 + 25024) * KB
    assert resident_bytes([3, 4], tmp_path) is None


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_of_one_process_it_is_what_the_kernel_calls_resident() -> None:
    found = resident_bytes([os.getpid()])
    assert found is not None
    assert found == pytest.approx(psutil.Process().memory_info().rss, rel=0.1)
