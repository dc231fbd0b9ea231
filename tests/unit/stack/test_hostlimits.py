"""What several nodes of Elasticsearch in containers need of a machine, by what its kernel shows."""

from pathlib import Path

import pytest

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT
from sinkbench.stack.hostlimits import check_host, engine_is_here
from sinkbench.topology import Topology, load_topology

PUBLISHED = load_topology("published", CHECKOUT, CHECKOUT)
ALL_RIGHTS, NOT_THIS_ONE = "000001ffffffffff", "000001fffeffffff"
ENOUGH = ("524288", NOT_THIS_ONE, 0)


def machine(folder: Path, maps: str = "262144", **processes: tuple[str, str, int]) -> Path:
    """A folder as /proc, with processes of these names: their hard limit of files, rights and owner."""
    for name, text in (("vm/max_map_count", maps), ("fs/nr_open", "1048576")):
        (folder / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "sys" / name).write_text(f"{text}\n")
    for number, (name, (files, rights, owner)) in enumerate(processes.items(), start=100):
        process = folder / str(number)
        process.mkdir()
        (process / "comm").write_text(f"{name}\n")
        (process / "limits").write_text(f"Limit      Soft Limit  Hard Limit\nMax open files  1024  {files}  files\n")
        (process / "status").write_text(f"Name:\t{name}\nUid:\t{owner}\t{owner}\nCapEff:\t{rights}\n")
    return folder


@pytest.mark.parametrize(
    "processes",
    [
        {"dockerd": ENOUGH, "bash": ("10", NOT_THIS_ONE, 0)},
        # Root with this right raises its limit up to the kernel's.
        {"dockerd": ("1024", ALL_RIGHTS, 0)},
        # Of an engine in a virtual machine nothing is known.
        {"bash": ("10", NOT_THIS_ONE, 0)},
    ],
)
def test_a_machine_that_grants_enough_is_accepted(tmp_path: Path, processes: dict[str, tuple[str, str, int]]) -> None:
    proc = machine(tmp_path, maps="262144" if "dockerd" in processes else "65530", **processes)
    check_host(PUBLISHED, proc)
    assert engine_is_here(proc) is ("dockerd" in processes)


@pytest.mark.parametrize(
    ("engines", "files"),
    [
        # The lower one counts.
        ({"dockerd": ENOUGH, "containerd": ("20000", NOT_THIS_ONE, 0)}, 20_000),
        # The rights of another account count in its own namespace only.
        ({"dockerd": ("4096", ALL_RIGHTS, 1000)}, 4096),
    ],
)
def test_too_few_files_are_refused(tmp_path: Path, engines: dict[str, tuple[str, str, int]], files: int) -> None:
    with pytest.raises(StackError, match=rf"may open {files} files, 65535 are needed \(LimitNOFILE=65535"):
        check_host(PUBLISHED, machine(tmp_path, **engines))


def test_too_few_maps_are_refused_in_one_line_with_the_hosts_command(tmp_path: Path) -> None:
    proc = machine(tmp_path, maps="65530", dockerd=ENOUGH)
    with pytest.raises(StackError) as refused:
        check_host(PUBLISHED, proc)
    (said,) = str(refused.value).splitlines()
    assert said.startswith("the topology published has 3 Elasticsearch nodes")
    assert "vm.max_map_count is 65530, 262144 is needed (sudo sysctl -w vm.max_map_count=262144" in said
    assert "files" not in said
    check_host(Topology(), proc)
