"""Memory maps and open files that several Elasticsearch nodes in containers require: its bootstrap checks refuse less
once a node listens off loopback. If the engine runs in a virtual machine, the limits are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.topology import Topology

LEAST_MAPS = 262_144
LEAST_FILES = 65_535
PROC = Path("/proc")
# A container inherits the limits of the process that starts it: containerd if there is one, else dockerd.
_ENGINES = ("containerd", "dockerd")
# A root process with this capability may raise its limit of files up to the kernel's. Without root, it is a capability
# in the process's user namespace only.
_CAP_SYS_RESOURCE = 1 << 24
_LASTING = "/etc/sysctl.d/90-sinkbench.conf"


def engine_is_here(proc: Path = PROC) -> bool:
    return next(_engines(proc), None) is not None


def check_host(topology: Topology, proc: Path = PROC) -> None:
    """Raises StackError, with the required limits, if several Elasticsearch nodes would not start in containers."""
    several = len(topology.of("elasticsearch"))
    engines = list(_engines(proc))
    if several == 1 or not engines:
        return
    maps, files = _number(proc / "sys/vm/max_map_count"), min(_most_files(each, proc) for each in engines)
    missing = []
    if maps < LEAST_MAPS:
        missing.append(
            f"vm.max_map_count is {maps}, {LEAST_MAPS} is needed (sudo sysctl -w vm.max_map_count={LEAST_MAPS};"
            f" to make it last: echo vm.max_map_count={LEAST_MAPS} | sudo tee {_LASTING})"
        )
    if files < LEAST_FILES:
        missing.append(
            f"a container may open {files} files, {LEAST_FILES} are needed (LimitNOFILE={LEAST_FILES} in the engine's"
            " and containerd's systemd unit, or ulimit -Hn of the shell that starts dockerd)"
        )
    if missing:
        raise StackError(
            f"the topology {topology.name} has {several} Elasticsearch nodes, which do not start in containers of this"
            f" machine: {'; '.join(missing)}; else use the local stack, or a topology with one node of Elasticsearch"
        )


def _engines(proc: Path) -> Iterator[Path]:
    for process in proc.glob("[0-9]*"):
        try:
            if (process / "comm").read_text(encoding="utf-8", errors="replace").strip() in _ENGINES:
                yield process
        except OSError:
            continue


def _most_files(process: Path, proc: Path) -> int:
    """Open files of containers that this process starts; `LEAST_FILES` if unknown."""
    try:
        limit = re.search(r"^Max open files\s+\S+\s+(\d+)", (process / "limits").read_text(), re.MULTILINE)
        status = dict(re.findall(r"^(Uid|CapEff):\s+(\w+)", (process / "status").read_text(), re.MULTILINE))
    except OSError:
        return LEAST_FILES
    if status.get("Uid") == "0" and int(status.get("CapEff", "0"), 16) & _CAP_SYS_RESOURCE:
        return _number(proc / "sys/fs/nr_open")
    return int(limit[1]) if limit else LEAST_FILES


def _number(path: Path) -> int:
    return int(path.read_text(encoding="utf-8"))
