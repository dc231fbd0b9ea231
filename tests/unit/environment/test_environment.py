"""What is read from the kernel's and the services' answers about the environment; no service is asked."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.environment import joined, with_sink
from sinkbench.environment.machine import allowance, container_kind, disk, kind_of_block, mount_of, own_allowance
from sinkbench.environment.services import common, flags_of, jvms, version_shown
from sinkbench.sinks import SinkSettings
from sinkbench.sinks.elasticsearch.service import about_of
from sinkbench.stack import Allowance, Endpoint
from sinkbench.stack.engine import allowance_of, command_of
from sinkbench.stack.registry import About
from tests.support.endpoints import endpoints
from tests.support.present import present

MOUNTS = [
    *(("proc", "/proc", "proc"), ("/dev/vda1", "/", "ext4"), ("tmpfs", "/dev/shm", "tmpfs")),  # noqa: S108
    *(("/dev/nvme0n1p2", "/home/an na", "xfs"), ("server:/export", "/home/an na/shared", "nfs4")),
    ("/dev/mapper/fast", "/home/an na/shared", "btrfs"),
]
# As Elasticsearch 9 tells them, with a home folder where there is one.
ARGUMENTS = [
    *("-Des.networkaddress.cache.ttl=60", "-XX:+AlwaysPreTouch", "-Xss1m", "-Djava.io.tmpdir=/home/anna/tmp"),
    *("-XX:-OmitStackTraceInFastThrow", "--add-opens=org.apache.lucene.core/org.apache.lucene.codecs=ALL-UNNAMED"),
    *("-XX:HeapDumpPath=data", "-XX:ErrorFile=/home/anna/hs_err_pid%p.log", "-XX:OnOutOfMemoryError=mail anna"),
    "-Xlog:gc*,gc+age=trace,safepoint:file=/home/anna/gc.log:utctime,level:filecount=32",
    *("-Xms512m", "-Xmx512m", "-Xms1g", "-Xmx1g", "-XX:MaxDirectMemorySize=536870912", "-XX:G1HeapRegionSize=4m"),
    "-javaagent:/home/anna/agent.jar",
]
NODE = {"version": "9.5.3", "jvm": {"version": "25.0.1", "input_arguments": ARGUMENTS}}
BROKER = ["/usr/lib/jvm/java-25/bin/java", "-Xms768m", "-Xmx768m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
BROKER += ["-cp", "/home/anna/libs/*", "kafka.Kafka", "/home/anna/server.properties"]
WORKER = ["/usr/lib/jvm/java-25/bin/java", "-Xms768m", "-Xmx768m", "-javaagent:/home/anna/a.jar=127.0.0.1:19404:x"]
EXPORTER = """
# TYPE jvm_runtime_info gauge
jvm_runtime_info{runtime="OpenJDK Runtime Environment",vendor="Debian",version="25.0.1+8-Debian-1"} 1
jvm_threads_current 60.0
"""
NOWHERE = endpoints("", sinks={"elasticsearch": Endpoint("http://127.0.0.1:1")})


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/var/lib", ("/dev/vda1", "ext4")),
        ("/dev/shm/x", ("tmpfs", "tmpfs")),  # noqa: S108
        ("/home/an na/data", ("/dev/nvme0n1p2", "xfs")),
        ("/home/an nabel", ("/dev/vda1", "ext4")),
        # Mounted over the other one, which is hidden.
        ("/home/an na/shared/x", ("/dev/mapper/fast", "btrfs")),
    ],
)
def test_a_path_is_on_the_mount_that_holds_it(
    path: str, found: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = [SimpleNamespace(device=device, mountpoint=point, fstype=kind) for device, point, kind in MOUNTS]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: there)
    assert mount_of(Path(path)) == found


@pytest.mark.parametrize(
    ("name", "rotational", "maker", "kind"),
    [
        ("nvme0n1", "0", "Samsung SSD 990", "nvme"),
        ("sda", "0", "ATA Samsung SSD 860", "ssd"),
        ("sda", "1", "ATA WDC WD40EFRX", "rotational"),
        # Virtual disks say of themselves that they turn.
        ("vda", "1", "0x1af4", "virtual"),
        ("sda", "1", "QEMU QEMU HARDDISK", "virtual"),
        ("nvme1n1", "0", "Amazon Elastic Block Store", "virtual"),
        ("mmcblk0", "0", "", "ssd"),
        ("sdb", None, "", None),
    ],
)
def test_the_kind_of_a_disk(name: str, rotational: str | None, maker: str, kind: str | None) -> None:
    assert kind_of_block(name, rotational, maker) == kind


def test_a_folder_that_is_not_there_yet_is_on_the_disk_of_the_one_above(tmp_path: Path) -> None:
    assert disk(tmp_path / "no" / "such" / "folder") == disk(tmp_path)
    assert disk(tmp_path)["filesystem"] is not None
    assert disk(None) == {"filesystem": None, "kind": None}
    assert disk(Path("/proc"))["filesystem"] == "proc"


@pytest.mark.parametrize(
    ("marks", "variables", "cgroups", "kind"),
    [
        (set(), {}, "0::/user.slice/user-1000.slice/session-1.scope", "none"),
        ({"/.dockerenv"}, {}, "0::/", "docker"),
        ({"/.dockerenv"}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "0::/", "kubernetes"),
        (set(), {"container": "lxc"}, "0::/", "lxc"),
        # What has no name of a kind is not taken for one.
        (set(), {"container": "/home/anna"}, "0::/", "none"),
        (set(), {}, "0::/kubepods.slice/kubepods-pod1.slice/x", "kubernetes"),
    ],
)
def test_a_container_is_known_by_its_marks(marks: set[str], variables: dict[str, str], cgroups: str, kind: str) -> None:
    assert container_kind(marks, variables, cgroups) == kind


def test_the_least_of_a_control_group_and_those_above_it_holds() -> None:
    files = {
        "cgroup.controllers": "cpu memory",
        "a.slice/b.scope/cpu.max": "max 100000",
        "a.slice/b.scope/memory.max": "4294967296",
        "a.slice/cpu.max": "150000 100000",
        "a.slice/memory.max": "2147483648",
    }
    assert own_allowance("0::/a.slice/b.scope", files.get) == Allowance(1.5, 2_147_483_648)
    # A container sees its own group as the root.
    for cgroups in ("0::/", "0::/../../somewhere/else"):
        found = {"cgroup.controllers": "", "cpu.max": "50000 100000", "memory.max": "max"}
        assert own_allowance(cgroups, found.get) == Allowance(0.5, None)


def test_without_a_limit_there_is_none_and_what_is_not_known_is_none_of_it() -> None:
    bare = {"cgroup.controllers": "cpu"}
    assert own_allowance("0::/", bare.get) == Allowance(None, None)
    assert present(own_allowance("0::/", bare.get, 1_000_000)).cpus == 1_000_000
    assert own_allowance("0::/", {}.get) is None


def test_version_1_of_control_groups_tells_a_container_its_own_limits_at_the_root() -> None:
    files = {"memory/memory.limit_in_bytes": "1073741824", "cpu/cpu.cfs_quota_us": "-1"}
    files["cpu/cpu.cfs_period_us"] = "100000"
    assert own_allowance("4:memory:/docker/ab\n0::/", files.get) == Allowance(None, 2**30)
    files |= {"memory/memory.limit_in_bytes": "9223372036854771712", "cpu/cpu.cfs_quota_us": "150000"}
    assert own_allowance("4:memory:/docker/ab\n0::/", files.get) == Allowance(1.5, None)


def test_a_limit_is_kept_as_a_number_or_as_none() -> None:
    assert allowance(Allowance(None, 5)) == {"cpus": "no limit", "memory_bytes": 5}
    assert allowance(None) == {"cpus": None, "memory_bytes": None}


def test_flags_are_kept_by_name_and_the_last_one_holds() -> None:
    assert flags_of(ARGUMENTS) == {
        **{"AlwaysPreTouch": True, "Xss": "1m", "OmitStackTraceInFastThrow": False, "Xms": "1g", "Xmx": "1g"},
        **{"MaxDirectMemorySize": "536870912", "G1HeapRegionSize": "4m"},
    }


@given(st.lists(st.text() | st.from_regex(r"-(XX:|X|D)[\w.:=/+-]*", fullmatch=True)))
def test_no_flag_holds_a_path_or_a_word_of_the_user(words: list[str]) -> None:
    for value in flags_of(words).values():
        assert isinstance(value, bool) or str(value)[0].isdigit()
        assert "/" not in str(value)


def test_the_version_of_java_is_read_from_newer_and_older_exporters() -> None:
    assert version_shown(EXPORTER) == "25.0.1+8-Debian-1"
    assert version_shown(EXPORTER.replace("jvm_runtime_info", "jvm_info")) == "25.0.1+8-Debian-1"
    assert (version_shown("jvm_threads_current 60.0"), version_shown("jvm_info{broken")) == (None, None)
    # Several processes share a version, or differ.
    assert [common(each) for each in (["a", None, "a"], ["a", "b"], [None])] == ["a", "different", None]


def test_the_javas_of_all_services_are_shown_without_a_path() -> None:
    commands = {"kafka": BROKER, "connect-1": WORKER, "connect-2": WORKER, "postgres": ["postgres"]}
    found = jvms(NOWHERE, commands, {"elasticsearch": about_of(NODE)})
    heap = {"Xms": "768m", "Xmx": "768m"}
    assert found["kafka"] == {"version": None, "flags": {**heap, "UseG1GC": True, "MaxGCPauseMillis": "20"}}
    assert found["connect"] == {"version": None, "flags": heap}
    assert [each for each in ("anna", "/") if each in json.dumps(found)] == []


def test_what_a_container_does_not_show_of_a_java_is_not_known() -> None:
    check = ["90", "4", "kcat -b kafka:9092 -L"]
    processes = [check, ["101", "4", "/sbin/docker-init -- run"], ["107", "101", "java -Xmx768m kafka.Kafka"]]
    assert (command_of(processes), command_of([check])) == (["java", "-Xmx768m", "kafka.Kafka"], [])
    unknown = {"version": None, "flags": None}
    found = jvms(NOWHERE, {}, {"elasticsearch": About()})
    assert found == dict.fromkeys(("kafka", "connect", "elasticsearch"), unknown)


def test_a_sinks_settings_are_added_and_not_forgotten() -> None:
    found = {"durability": {"kafka": {"acks": "all"}}}
    for fsync, level, buffers in (("on", None, "128MB"), (None, "replica", None)):
        seen = SinkSettings({"fsync": fsync, "wal_level": level}, {"shared_buffers": buffers})
        found = with_sink(found, "postgres", seen)
    assert found == {
        "durability": {"kafka": {"acks": "all"}, "postgres": {"fsync": "on", "wal_level": "replica"}},
        "sink_settings": {"postgres": {"shared_buffers": "128MB"}},
    }
    # Of a second stack of the same run.
    other = with_sink(found, "postgres", SinkSettings({"fsync": "on"}, {"shared_buffers": "64MB"}))
    assert other["sink_settings"] == {"postgres": {"shared_buffers": "128MB or 64MB"}}
    assert other["durability"] == found["durability"]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"Memory": 0, "NanoCpus": 0, "CpuQuota": 0, "CpusetCpus": ""}, Allowance(None, None)),
        ({"Memory": 2_147_483_648, "NanoCpus": 1_500_000_000}, Allowance(1.5, 2_147_483_648)),
    ],
)
def test_a_containers_limits_are_read_from_the_engines_answer(told: dict[str, object], expected: Allowance) -> None:
    assert allowance_of(told) == expected


def test_what_differs_between_starts_of_a_stack_is_told_once_each() -> None:
    first = {"versions": {"kafka": "4.3.1"}, "jvm": {"Xmx": "1g", "switch": True}}
    second = {"versions": {"kafka": "4.2.0", "connect": "4.2.0"}, "jvm": {"Xmx": "1g", "switch": True}}
    both = joined(first, second)
    assert both == {"versions": {"kafka": "4.3.1 or 4.2.0", "connect": "4.2.0"}, "jvm": first["jvm"]}
    assert joined(both, second) == both
