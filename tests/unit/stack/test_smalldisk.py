"""A real small disk: it is full when it is told to be, and gone in the end."""

import errno
import getpass
import os
from pathlib import Path

import pytest

from sinkbench.errors import StackError
from sinkbench.stack.smalldisk import SmallDisks, unmount_small_disk

PAGE = b"x" * 4096
MEGABYTE = 2**20


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where to mount one: a folder in a path with a space."""
    place = tmp_path / "a disk"
    place.mkdir()
    try:
        disks(place).check()
    except StackError as missing:
        pytest.skip(str(missing))
    return place


def disks(place: Path) -> SmallDisks:
    return SmallDisks(place, getpass.getuser())


def write(path: Path) -> int | None:
    """The number of the error with which writing a page to a new file fails."""
    try:
        path.write_bytes(PAGE)
    except OSError as error:
        return error.errno
    return None


def test_it_is_full_and_free_again_and_keeps_what_it_holds(place: Path) -> None:
    with disks(place).mounted(8 * MEGABYTE) as disk:
        assert write(disk.path / "kept") is None
        assert write(disk.path / "first") is None
        disk.fill()
        assert write(disk.path / "second") == errno.ENOSPC
        # What has become free is taken, too.
        (disk.path / "first").unlink()
        disk.fill()
        assert write(disk.path / "third") == errno.ENOSPC
        disk.free()
        assert (disk.path / "kept").read_bytes() == PAGE
        (disk.path / "large").write_bytes(PAGE * 1_000)
        assert os.statvfs(disk.path).f_blocks * os.statvfs(disk.path).f_frsize == 8 * MEGABYTE
    assert list(place.iterdir()) == []


def test_one_that_a_killed_controller_has_left_is_used_again(place: Path) -> None:
    left = disks(place).mounted(MEGABYTE)
    before = left.__enter__()
    (before.path / "large").write_bytes(PAGE * 200)
    before.fill()
    # One that is too small for what lies on it grows.
    with disks(place).mounted(MEGABYTE // 2) as disk:
        assert write(disk.path / "first") is None
    assert not place.is_mount()
    unmount_small_disk(place)


def test_without_the_right_to_mount_it_is_refused(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nCapEff:\t000001ffffffffff\n")
    disks(tmp_path).check(status)
    # Root in a container has most rights.
    for rights in ("CapEff:\t00000000a80425fb\n", "CapEff:\t0000000000000000\n", ""):
        status.write_text(rights)
        with pytest.raises(StackError, match=r"run it as root$"):
            disks(tmp_path).check(status)
