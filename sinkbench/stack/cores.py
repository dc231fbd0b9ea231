"""Holds processes of this machine to a share of its cores and memory: control groups (version 2 or 1) of their own."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from sinkbench.errors import StackError

CGROUPS = Path("/sys/fs/cgroup")
PERIOD = 100_000
"""Microseconds: the kernel counts the CPU time of a group anew in each."""
CONTROLLERS = ("cpu", "memory")


def can_hold() -> bool:
    """Whether this account may make control groups that share out cores and memory: root, if the kernel has them."""
    enabled = CGROUPS / "cgroup.subtree_control"
    has_both = {*CONTROLLERS} <= {*enabled.read_text().split()} if enabled.exists() else True
    return has_both and all(os.access(_root(each) / "cgroup.procs", os.W_OK) for each in CONTROLLERS)


@contextmanager
def held_to(pids: Collection[int], cores: float | None, memory_bytes: int | None) -> Iterator[None]:
    """Until the context ends each process has at most so many cores, and so much further memory, files that the kernel
    keeps for it included. None is unlimited. Raises StackError if the kernel refuses that."""
    limits: dict[str, dict[str, str]] = {}
    if cores is not None:
        quota = int(cores * PERIOD)
        former = {"cpu.cfs_period_us": f"{PERIOD}", "cpu.cfs_quota_us": f"{quota}"}
        limits["cpu"] = {"cpu.max": f"{quota} {PERIOD}"} if _is_unified() else former
    if memory_bytes is not None:
        limits["memory"] = {"memory.max" if _is_unified() else "memory.limit_in_bytes": f"{memory_bytes}"}
    try:
        for controller, values in limits.items():
            for pid in pids:
                group = _group(controller, pid)
                group.mkdir(exist_ok=True)
                for name, value in {**values, "cgroup.procs": f"{pid}"}.items():
                    (group / name).write_text(value)
        yield
    except OSError as error:
        held = " and ".join(f"{controller} of {[*values.values()][-1]}" for controller, values in limits.items())
        raise StackError(f"no control group in {CGROUPS} for {held}: {error.strerror}") from None
    finally:
        release(pids)


def release(pids: Collection[int]) -> None:
    """Ends what a killed controller, or this one, has held processes to."""
    for controller in CONTROLLERS:
        for pid in pids:
            group = _group(controller, pid)
            if group.is_dir():
                (_root(controller) / "cgroup.procs").write_text(f"{pid}")
                group.rmdir()


def _is_unified() -> bool:
    return (CGROUPS / "cgroup.controllers").exists()


def _root(controller: str) -> Path:
    return CGROUPS if _is_unified() else CGROUPS / controller


def _group(controller: str, pid: int) -> Path:
    return _root(controller) / f"sinkbench-{pid}"
