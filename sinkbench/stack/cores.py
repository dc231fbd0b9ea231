"""Holds processes of this machine to a share of its cores and memory: control groups (version 2 or 1) of their own."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sinkbench.errors import StackError

CGROUPS = Path("/sys/fs/cgroup")
PERIOD = 100_000
"""Microseconds: the kernel counts the CPU time of a group anew in each."""
CONTROLLERS = ("cpu", "memory")
PREFIX = "sinkbench-"


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
    groups = {(controller, pid): _group_of(controller, pid) for controller in CONTROLLERS for pid in pids}
    try:
        _hold(pids, limits)
        yield
    finally:
        release(pids, groups)


def _hold(pids: Collection[int], limits: Mapping[str, Mapping[str, str]]) -> None:
    try:
        for controller, values in limits.items():
            for pid in pids:
                group = _root(controller) / f"{PREFIX}{pid}"
                group.mkdir(exist_ok=True)
                for name, value in {**values, "cgroup.procs": f"{pid}"}.items():
                    (group / name).write_text(value)
    except OSError as error:
        raise StackError(f"no control group of {' and '.join(limits)} in {CGROUPS}: {error.strerror}") from None


def release(pids: Collection[int], former: Mapping[tuple[str, int], Path] | None = None) -> None:
    """Ends what a killed controller, or this one, has held processes to, and removes groups whose process has died.
    Processes go to their `former` groups, by controller and process; where that is not known, to the root's."""
    for controller in CONTROLLERS:
        for group in _root(controller).glob(f"{PREFIX}*"):
            pid = int(group.name.removeprefix(PREFIX)) if group.name.removeprefix(PREFIX).isdecimal() else 0
            # Somebody else's, or of another account's processes, stays.
            with suppress(OSError):
                inside = (group / "cgroup.procs").read_text().split()
                for each in inside if pid in pids else ():
                    with suppress(ProcessLookupError):
                        ((former or {}).get((controller, pid), _root(controller)) / "cgroup.procs").write_text(each)
                if pid in pids or (pid and not inside):
                    group.rmdir()


def _group_of(controller: str, pid: int) -> Path:
    """The group that the process is in, the root's if it cannot be told or is one of ours."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if (controller in names.split(",") or (_is_unified() and not names)) and PREFIX not in path:
                return _root(controller) / path.lstrip("/")
    return _root(controller)


def _is_unified() -> bool:
    return (CGROUPS / "cgroup.controllers").exists()


def _root(controller: str) -> Path:
    return CGROUPS if _is_unified() else CGROUPS / controller
