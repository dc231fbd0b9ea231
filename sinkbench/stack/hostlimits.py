"""What several nodes of Elasticsearch in containers want of the engine's machine: memory maps and open files.

A node refuses to start with less as soon as it listens off loopback and is not alone. Only what is visible from here is
known: an engine may run in a virtual machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.stack.overlay import LEAST_FILES
from sinkbench.topology import Topology

__all__ = ["LEAST_MAPS", "Granted", "check_host", "granted"]

LEAST_MAPS = 262_144
# Whoever starts containers hands its limits down; where there is a containerd, it does that for dockerd.
_ENGINES = ("containerd", "dockerd")
# May raise a limit of files beyond its own, up to what the kernel allows a process.
_CAP_SYS_RESOURCE = 1 << 24
_FILES = re.compile(r"^Max open files\s+\S+\s+(\S+)", re.MULTILINE)
_RIGHTS = re.compile(r"^CapEff:\s+([0-9a-f]+)", re.MULTILINE)
_OWNER = re.compile(r"^Uid:\s+(\d+)", re.MULTILINE)
_LASTING = "/etc/sysctl.d/90-sinkbench.conf"


@dataclass(frozen=True)
class Granted:
    """What the engine's machine grants a container; None is not known.

    Attributes:
        maps: vm.max_map_count.
        files: the most files that a process may open.
        here: whether the engine is a process of this machine.
    """

    maps: int | None = None
    files: int | None = None
    here: bool = False


def check_host(topology: Topology, found: Granted) -> None:
    """Raises StackError if several nodes of Elasticsearch would not start in containers; says what the host needs."""
    several = len(topology.of("elasticsearch"))
    missing = []
    if found.maps is not None and found.maps < LEAST_MAPS:
        missing.append(
            f"vm.max_map_count is {found.maps}, {LEAST_MAPS} is needed (sudo sysctl -w vm.max_map_count={LEAST_MAPS};"
            f" to make it last: echo vm.max_map_count={LEAST_MAPS} | sudo tee {_LASTING})"
        )
    if found.files is not None and found.files < LEAST_FILES:
        missing.append(
            f"a container may open {found.files} files, {LEAST_FILES} are needed (LimitNOFILE={LEAST_FILES} in the"
            " engine's and containerd's systemd unit, or ulimit -Hn of whoever starts dockerd)"
        )
    if several == 1 or not missing:
        return
    raise StackError(
        f"the topology {topology.name} has {several} Elasticsearch nodes, which do not start in containers of this"
        f" machine: {'; '.join(missing)}; else take the local stack, or a topology with one node of Elasticsearch"
    )


def granted(proc: Path = Path("/proc")) -> Granted:
    """What this machine grants containers, if the engine runs here; `proc` is where the kernel shows its processes."""
    engines = list(_engines(proc))
    if not engines:
        return Granted()
    files = [most for each in engines if (most := _most_files(each, proc)) is not None]
    return Granted(_number(proc / "sys" / "vm" / "max_map_count"), min(files, default=None), here=True)


def _engines(proc: Path) -> Iterator[Path]:
    for process in proc.glob("[0-9]*"):
        try:
            name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        if name in _ENGINES:
            yield process


def _most_files(process: Path, proc: Path) -> int | None:
    try:
        limits = _FILES.search((process / "limits").read_text(encoding="utf-8"))
        status = (process / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    rights, owner = _RIGHTS.search(status), _OWNER.search(status)
    # Of somebody else than root these rights count in a namespace of its own only.
    if rights is not None and owner is not None and owner[1] == "0" and int(rights[1], 16) & _CAP_SYS_RESOURCE:
        return _number(proc / "sys" / "fs" / "nr_open")
    return int(limits[1]) if limits is not None and limits[1].isdigit() else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
