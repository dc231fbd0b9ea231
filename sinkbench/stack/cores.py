"""Holds processes of this machine to a share of its cores: a control group (version 2 or 1) of its own for each."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from sinkbench.errors import StackError

CGROUPS = Path("/sys/fs/cgroup")
PERIOD = 100_000
"""Microseconds: the kernel counts the CPU time of a group anew in each."""


def can_hold() -> bool:
    """Whether this account may make control groups that share out CPU time: root, if the kernel has them."""
    enabled = CGROUPS / "cgroup.subtree_control"
    has_cpu = "cpu" in enabled.read_text().split() if enabled.exists() else True
    return has_cpu and os.access(_root() / "cgroup.procs", os.W_OK)


@contextmanager
def held_to(cores: float, pids: Collection[int]) -> Iterator[None]:
    """Each process has at most `cores` until the context ends. Raises StackError if the kernel refuses that."""
    root, quota = _root(), int(cores * PERIOD)
    try:
        for pid in pids:
            group = _group(root, pid)
            group.mkdir(exist_ok=True)
            if root == CGROUPS:
                (group / "cpu.max").write_text(f"{quota} {PERIOD}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            (group / "cgroup.procs").write_text(str(pid))
        yield
    except OSError as error:
        raise StackError(f"no control group in {root} to hold a process to {cores:g} cores: {error.strerror}") from None
    finally:
        release(pids)


def release(pids: Collection[int]) -> None:
    """Ends what a killed controller, or this one, has held processes to."""
    root = _root()
    for pid in pids:
        group = _group(root, pid)
        if group.is_dir():
            (root / "cgroup.procs").write_text(str(pid))
            group.rmdir()


def _root() -> Path:
    return CGROUPS if (CGROUPS / "cgroup.controllers").exists() else CGROUPS / "cpu"


def _group(root: Path, pid: int) -> Path:
    return root / f"sinkbench-{pid}"
