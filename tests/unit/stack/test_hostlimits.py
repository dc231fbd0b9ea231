"""What several nodes of Elasticsearch in containers want of a machine, by what its kernel shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT
from sinkbench.stack.hostlimits import Granted, check_host, granted
from sinkbench.topology import Topology, load_topology

PUBLISHED = load_topology("published", CHECKOUT, CHECKOUT)
ALL_RIGHTS, NOT_THIS_ONE = "000001ffffffffff", "000001fffeffffff"


def machine(folder: Path, maps: str = "262144", **engines: tuple[str, str, int]) -> Path:
    """A folder as /proc, with processes of these names: their hard limit of files, rights and owner."""
    for name, text in (("vm/max_map_count", maps), ("fs/nr_open", "1048576")):
        (folder / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "sys" / name).write_text(f"{text}\n")
    for number, (name, (files, rights, owner)) in enumerate(engines.items(), start=100):
        process = folder / str(number)
        process.mkdir()
        (process / "comm").write_text(f"{name}\n")
        (process / "limits").write_text(
            f"Limit      Soft Limit  Hard Limit  Units\nMax open files  1024  {files}  files\n"
        )
        (process / "status").write_text(f"Name:\t{name}\nUid:\t{owner}\t{owner}\nCapEff:\t{rights}\n")
    return folder


def test_one_that_grants_enough_is_taken(tmp_path: Path) -> None:
    found = granted(machine(tmp_path, dockerd=("524288", NOT_THIS_ONE, 0)))
    assert found == Granted(maps=262_144, files=524_288, here=True)
    check_host(PUBLISHED, found)


def test_root_with_the_right_to_raises_its_limit_up_to_the_kernels(tmp_path: Path) -> None:
    assert granted(machine(tmp_path, dockerd=("1024", ALL_RIGHTS, 0))).files == 1_048_576


def test_the_rights_of_an_account_count_in_its_own_namespace_only(tmp_path: Path) -> None:
    assert granted(machine(tmp_path, dockerd=("4096", ALL_RIGHTS, 1000))).files == 4096


def test_the_lower_limit_of_engine_and_containerd_counts(tmp_path: Path) -> None:
    engines = {"dockerd": ("524288", NOT_THIS_ONE, 0), "containerd": ("20000", NOT_THIS_ONE, 0)}
    assert granted(machine(tmp_path, **engines, bash=("10", NOT_THIS_ONE, 0))).files == 20_000


def test_nothing_is_known_of_an_engine_that_runs_elsewhere_and_nothing_refused(tmp_path: Path) -> None:
    found = granted(machine(tmp_path, maps="65530", bash=("10", NOT_THIS_ONE, 0)))
    assert found == Granted()
    check_host(PUBLISHED, found)


def test_too_few_maps_are_refused_in_one_line_with_the_hosts_command() -> None:
    with pytest.raises(StackError) as refused:
        check_host(PUBLISHED, Granted(maps=65_530, files=1_048_576, here=True))
    said = str(refused.value)
    assert said.startswith("the topology published has 3 Elasticsearch nodes")
    assert "vm.max_map_count is 65530, 262144 is needed (sudo sysctl -w vm.max_map_count=262144" in said
    assert "/etc/sysctl.d/" in said
    assert "files" not in said
    assert "\n" not in said


def test_too_few_files_are_refused_too() -> None:
    with pytest.raises(StackError, match=r"may open 20000 files, 65535 are needed \(LimitNOFILE=65535"):
        check_host(PUBLISHED, Granted(maps=262_144, files=20_000, here=True))


def test_a_single_node_of_elasticsearch_wants_nothing() -> None:
    check_host(Topology(), Granted(maps=65_530, files=1024, here=True))
