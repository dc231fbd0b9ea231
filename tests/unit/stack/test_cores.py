"""A process that is held to a share of a core has no more of it, and all of them afterwards."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sinkbench.errors import StackError
from sinkbench.stack import cores
from sinkbench.stack.cores import can_hold, held_to, release

with_groups = pytest.mark.skipif(not can_hold(), reason="no control groups for this account")


@pytest.fixture
def busy() -> Iterator[psutil.Process]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield psutil.Process(process.pid)
    process.kill()
    process.wait()


def share(process: psutil.Process) -> float:
    before, since = process.cpu_times().user, time.monotonic()
    time.sleep(1)
    return (process.cpu_times().user - before) / (time.monotonic() - since)


@with_groups
def test_a_process_is_held_and_let_go(busy: psutil.Process) -> None:
    own = Path(f"/proc/{busy.pid}/cgroup")
    before = own.read_text()
    with held_to([busy.pid], 0.2, None):
        assert own.read_text() != before
    # A limit that others have set holds again.
    assert own.read_text() == before
    with held_to([busy.pid], 0.2, None):
        held = share(busy)
        assert f"sinkbench-{busy.pid}" in own.read_text()
        # As a next `up` does for a controller that was killed.
        release([busy.pid])
    # Twice the share: user time is counted in ticks, and the kernel lets a group finish what it has begun.
    assert held < 0.4
    assert "sinkbench" not in own.read_text()
    release([busy.pid])


@with_groups
def test_a_process_keeps_only_so_much_of_a_file_in_memory(tmp_path: Path) -> None:
    write = f"input(); open({str(tmp_path / 'file')!r}, 'wb').write(bytes(100 << 20)); print(flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", write], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process, held_to([process.pid], None, 160 << 20):
        print(file=process.stdin, flush=True)
        assert process.stdout is not None
        process.stdout.readline()
        (group,) = Path("/sys/fs/cgroup").glob(f"**/sinkbench-{process.pid}")
        used = next(group / name for name in ("memory.current", "memory.usage_in_bytes") if (group / name).exists())
        assert 0 < int(used.read_text()) <= 160 << 20
        process.kill()


@with_groups
def test_a_process_that_dies_is_no_error_and_the_others_are_let_go(busy: psutil.Process) -> None:
    other = subprocess.Popen(["sleep", "60"])

    def fail() -> None:
        with held_to([other.pid, busy.pid], 0.5, 64 << 20):
            other.kill()
            other.wait()
            raise ConnectionError("no broker")

    with pytest.raises(ConnectionError, match=r"^no broker$"):
        fail()
    left = [each for pid in (other.pid, busy.pid) for each in Path("/sys/fs/cgroup").glob(f"**/sinkbench-{pid}")]
    assert left == []


def test_what_the_kernel_refuses_is_one_line(busy: psutil.Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "CGROUPS", Path("/proc"))
    assert not can_hold()
    with (
        pytest.raises(StackError, match=r"^no control group of cpu and memory in /proc: "),
        held_to([busy.pid], 0.2, 5),
    ):
        pass
