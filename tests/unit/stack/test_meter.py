"""What processes hold of the machine's memory, and what a JVM spends on itself, by what the kernel says of them."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sinkbench.stack import meter
from sinkbench.stack.meter import COMPILER, GC, MONITORING, JvmClock, Meter, part_of, resident_bytes

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


def test_what_processes_share_is_counted_once_and_those_that_have_ended_hold_nothing(tmp_path: Path) -> None:
    for pid, text in ((1, BACKEND), (2, BACKEND), (3, ZOMBIE)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_bytes(text)
    assert resident_bytes([1, 2, 3, 4], tmp_path) == (2 * 3396 + 14380 + 25024) * 1024
    assert resident_bytes([3, 4], tmp_path) is None


@pytest.mark.parametrize(
    ("thread", "part"),
    [
        ("C2 CompilerThre", COMPILER),
        ("C1 CompilerThre\n", COMPILER),
        ("GC Thread#1", GC),
        ("G1 Conc#0", GC),
        ("ZWorkerYoung#0", GC),
        ("prometheus-http", MONITORING),
        ("VM Thread", None),
        ("task-thread-G1 ", None),
    ],
)
def test_threads_are_known_by_their_names(thread: str, part: str | None) -> None:
    assert part_of(thread) == part


def thread(folder: Path, number: int, name: str, user: float, system: float) -> Path:
    """A thread as the kernel shows it; a name may hold spaces and brackets."""
    there = folder / str(os.getpid()) / "task" / str(number)
    there.mkdir(parents=True, exist_ok=True)
    (there / "comm").write_text(f"{name}\n")
    before = " ".join(["S", *"0" * 10])
    ticks = os.sysconf("SC_CLK_TCK")
    (there / "stat").write_text(f"{number} ({name}) {before} {int(user * ticks)} {int(system * ticks)} 0 0 20 0\n")
    return there


def test_the_cpu_time_of_compilers_and_collectors_is_summed(tmp_path: Path) -> None:
    thread(tmp_path, 1, "java", 100, 10)
    thread(tmp_path, 2, "C1 CompilerThre", 1, 0.5)
    thread(tmp_path, 3, "C2 CompilerThre", 3, 0)
    thread(tmp_path, 4, "GC Thread#0) 1 (", 2, 1)
    assert JvmClock(os.getpid(), tmp_path).seconds() == {COMPILER: 4.5, MONITORING: 0, GC: 3.0}


def test_what_a_thread_had_used_when_it_ended_stays_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    thread(tmp_path, 2, "C1 CompilerThre", 1, 0)
    ending = thread(tmp_path, 3, "C2 CompilerThre", 3, 0)
    clock = JvmClock(os.getpid(), tmp_path)
    assert clock.seconds()[COMPILER] == 4
    for file in ending.iterdir():
        file.unlink()
    thread(tmp_path, 2, "C1 CompilerThre", 2, 0)
    thread(tmp_path, 4, "C2 CompilerThre", 5, 0)
    # A new thread is found when the clock looks for threads again.
    assert clock.seconds()[COMPILER] == 5
    monkeypatch.setattr(meter, "LOOK_SECONDS", 0.0)
    assert clock.seconds()[COMPILER] == 10


def test_a_process_that_is_no_jvm_or_is_gone_has_no_parts(tmp_path: Path) -> None:
    thread(tmp_path, 1, "postgres", 100, 10)
    assert JvmClock(os.getpid(), tmp_path).seconds() == {}
    assert JvmClock(2**22 + 1).seconds() == {}


def test_canaries_of_several_sinks_read_one_at_a_time(tmp_path: Path) -> None:
    inside, another = threading.Lock(), threading.Event()

    def pids() -> dict[str, int]:
        if not inside.acquire(blocking=False):
            another.set()
            return {}
        with ThreadPoolExecutor(1) as pool:
            pool.submit(another.wait, 0.2).result()
        inside.release()
        return {"postgres": os.getpid()}

    shared = Meter(["postgres"], pids, tmp_path)
    with ThreadPoolExecutor(3) as pool:
        read = [each.result() for each in [pool.submit(shared.read) for _ in range(3)]]
    assert not another.is_set()
    assert all(each.cpu_seconds["postgres"] is not None for each in read)
