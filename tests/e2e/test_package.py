"""The wheel: all data files inside, the same bytes twice, and what needs no stack works outside of the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sinkbench import __version__
from sinkbench.place import CHECKOUT, data_folder
from tests.support.samplerun import keep_run

pytestmark = pytest.mark.long
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
WHEN = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b.invalid")
Sinkbench = Callable[..., subprocess.CompletedProcess[str]]


def told(*command: str | Path, **environment: str) -> str:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SINKBENCH_", "GIT_"))}
    done = subprocess.run(command, env={**plain, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def build(source: Path, to: Path) -> Path:
    told(*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", to, source, SOURCE_DATE_EPOCH="1767225600")
    return next(to.glob("*.whl"))


def source(folder: Path, names: list[str]) -> str:
    """A checkout of this one's files with a plugin of a user; returns its commit."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, folder / name)
    (folder / "connect" / "plugins" / "mine.jar").touch()
    for arguments in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "x")):
        told(*GIT, "-C", folder, *arguments, **WHEN)
    return told("git", "-C", folder, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def names() -> list[str]:
    """The checkout's files, without those of tests and documents."""
    listed = told("git", "-C", CHECKOUT, "ls-files", "--cached", "--others", "--exclude-standard")
    left_out = ("tests/", "docs/", "benchmarks/")
    return [each for each in listed.splitlines() if not each.startswith(left_out) and (CHECKOUT / each).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> tuple[Path, str]:
    """A wheel, and the commit that it was built from."""
    folder = tmp_path_factory.mktemp("built")
    commit = source(folder / "one", names)
    return build(folder / "one", folder), commit


@pytest.fixture(scope="module")
def sinkbench(wheel: tuple[Path, str]) -> Iterator[Sinkbench]:
    """Runs the installed program in an empty folder; its state is in `home` there, which other accounts may enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        told(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
        told(*PIP, "--python", folder / "venv" / "bin" / "python", "install", "--no-deps", wheel[0])
        # What sinkbench depends on, without this environment's sinkbench, of which a .pth file here is not read.
        packages = next((folder / "venv" / "lib").glob("python*/site-packages"))
        (packages / "here.pth").write_text(sysconfig.get_path("purelib") + "\n")
        runs = folder / "data" / "sinkbench" / "results"
        (folder / "empty").mkdir()
        runs.mkdir(parents=True)
        for _ in range(2):
            keep_run(runs)

        def call(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
            plain = {"PATH": os.environ["PATH"], "HOME": name, "XDG_DATA_HOME": f"{name}/data", **environment}
            plain |= {"SINKBENCH_PORT_OFFSET": "7000"}
            command = [folder / "venv" / "bin" / "sinkbench", *arguments]
            return subprocess.run(command, env=plain, cwd=folder / "empty", capture_output=True, text=True, check=False)

        yield call
        assert list((folder / "empty").iterdir()) == []


def test_a_wheel_has_the_same_bytes_again_wherever_it_is_built(
    wheel: tuple[Path, str], names: list[str], tmp_path: Path
) -> None:
    commit = source(tmp_path / "another folder", names)
    # What an earlier build has left.
    stale = tmp_path / "another folder" / "build" / "lib" / "sinkbench" / "gone.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    umask = os.umask(0o077)
    try:
        again = build(tmp_path / "another folder", tmp_path)
    finally:
        os.umask(umask)
    assert (commit, again.name, again.read_bytes() == wheel[0].read_bytes()) == (wheel[1], wheel[0].name, True)


def test_a_wheel_has_all_files_that_a_race_reads_and_no_plugin_of_a_user(
    wheel: tuple[Path, str], names: list[str]
) -> None:
    inside = {each.removeprefix("sinkbench/checkout/") for each in zipfile.ZipFile(wheel[0]).namelist()}
    folders = {each.split("/")[0] for each in names if "/" in each} - {"scripts", ".ci", ".github", "ci"}
    needed = {each for each in names if each.split("/")[0] in folders and "/src/test/" not in each}
    assert needed - inside - {"sinkbench/Dockerfile", "sinkbench/run", "loadgen/run", "loadgen/Dockerfile"} == set()
    assert [each for each in inside if each.endswith((".jar", ".class", ".pyc"))] == []


@pytest.mark.parametrize(
    "command", ["plans", "runs", "show", "compare", "report", "size --rate 1000", "replicate part8"]
)
def test_an_installed_sinkbench_does_what_needs_no_stack(command: str, sinkbench: Sinkbench) -> None:
    done = sinkbench(*command.split())
    # 3: a comparison that is open.
    assert (done.returncode in (0, 3), done.stderr) == (True, "")
    assert done.stdout


def test_an_installed_sinkbench_says_that_no_stack_is_up_and_that_it_builds_no_images(sinkbench: Sinkbench) -> None:
    assert "connect-3" in sinkbench("check").stdout
    assert "the stack is down" in sinkbench("doctor", "quick").stdout
    assert "a checkout" in sinkbench("check", "--stack", "compose").stderr


def test_an_installed_sinkbench_tells_its_version_and_commit(sinkbench: Sinkbench, wheel: tuple[Path, str]) -> None:
    assert sinkbench("version").stdout == f"{__version__} (commit {wheel[1]})\n"


def test_a_home_that_cannot_be_written_is_one_line(sinkbench: Sinkbench, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = sinkbench("race", "quick", SINKBENCH_HOME=str(tmp_path / "file" / "home"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert str(tmp_path / "file") in done.stderr


def test_state_is_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    for given, found in (("/data", "/data"), ("data", "/home/me/.local/share"), ("", "/home/me/.local/share")):
        monkeypatch.setenv("XDG_DATA_HOME", given)
        assert data_folder() == Path(found) / "sinkbench"
