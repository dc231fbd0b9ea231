"""A checkout that was moved or copied: its programs are those of another folder, which is said."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sinkbench.cli.main import check_place
from sinkbench.errors import SettingsError
from sinkbench.settings import CHECKOUT

# As pip writes them: plain, and where the path is too long or has a space.
PLAIN = "#!{0}/bin/python{1}\n# -*- coding: utf-8 -*-\n"
WITH_SH = "#!/bin/sh\n'''exec' \"{0}/bin/python{1}\" \"$0\" \"$@\"\n' '''\n"


def checkout(folder: Path, made: Path | str | None, line: str = PLAIN, version: str = "") -> Path:
    """A checkout whose virtual environment was made in that folder; None: it has none yet."""
    (folder / "scripts").mkdir(parents=True)
    for name in ("moved", "scale"):
        shutil.copy(CHECKOUT / "scripts" / name, folder / "scripts")
    if made is not None:
        (folder / ".venv" / "bin").mkdir(parents=True)
        (folder / ".venv" / "pyvenv.cfg").touch()
        (folder / ".venv" / "bin" / "sinkbench").write_text(line.format(made, version))
    return folder


def moved(folder: Path) -> str:
    """What scripts/moved prints, without a locale."""
    script, plain = folder / "scripts" / "moved", {"PATH": "/usr/bin:/bin"}
    return subprocess.run([script], env=plain, capture_output=True, check=True).stdout.decode().strip()


@pytest.mark.parametrize(("name", "version", "line"), [("plain", "", PLAIN), ("büro test", "3.11", WITH_SH)])
def test_a_checkout_that_was_moved_is_told_from_one_that_was_not(
    name: str, version: str, line: str, tmp_path: Path
) -> None:
    here = tmp_path / name
    assert moved(checkout(here, here / ".venv", line, version)) == ""
    new = tmp_path / "new"
    here.rename(new)
    assert moved(new) == str(here / ".venv")
    # A copy, beside which the old one is still there.
    shutil.copytree(new, here)
    assert (moved(new), moved(here)) == (str(here / ".venv"), "")


def test_a_program_of_a_copied_checkout_does_not_work_for_the_other_one(tmp_path: Path) -> None:
    old, copy = (checkout(tmp_path / name, tmp_path / "old" / ".venv") / ".venv" for name in ("old", "copy"))
    check_place(old / "bin" / "sinkbench", old)
    (tmp_path / "link").symlink_to(old)
    check_place(tmp_path / "link" / "bin" / "sinkbench", old)
    # `python -m sinkbench`, and a test.
    check_place(CHECKOUT / "sinkbench" / "__main__.py", old)
    said = r"copy/.venv/bin/sinkbench: is a program of .*/old/.venv, .* scripts/setup"
    with pytest.raises(SettingsError, match=said):
        check_place(copy / "bin" / "sinkbench", old)


@pytest.mark.long
def test_the_scripts_work_below_a_folder_with_every_character_that_a_shell_expands(tmp_path: Path) -> None:
    here = tmp_path / "a $HOME `b` 'c' \"d\"" / "checkout"
    (here / ".venv" / "bin").mkdir(parents=True)
    shutil.copytree(CHECKOUT / "scripts", here / "scripts")
    for name, line in ((".venv/bin/python", f'exec {shlex.quote(sys.executable)} "$@"'), ("scripts/setup", "exit 0")):
        (here / name).write_text(f"#!/bin/sh\n{line}\n")
        (here / name).chmod(0o755)
    # As pip writes them: the shell looks for another folder.
    for name in ("sinkbench", "loadgen"):
        (here / ".venv" / "bin" / name).write_text(WITH_SH.format(here / ".venv", "") + "print('runs')\n")
        (here / ".venv" / "bin" / name).chmod(0o755)
    for _ in range(2):
        subprocess.run([here / "scripts" / "quote-launchers"], check=True)
        assert subprocess.check_output([here / ".venv" / "bin" / "sinkbench"], text=True) == "runs\n"
        assert moved(here) == ""
    # Code that only lies where it is called is not run.
    (tmp_path / "sinkbench").mkdir()
    (tmp_path / "sinkbench" / "__main__.py").write_text("raise SystemExit(3)")
    for name in ("race", "scale"):
        command = [here / "scripts" / name, "--help"]
        path = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=False)
        assert (done.returncode, f"Usage: sinkbench {name} " in done.stdout) == (0, True), done.stderr
    text = "".join(file.read_text() for file in (here / "scripts").iterdir())
    assert {*re.findall(r"(?<!-x )\.venv/bin/(\w+) ", text)} == {"python", "ruff"}


def test_a_name_that_the_output_cannot_show_ends_no_command(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "SINKBENCH_HOME": str(tmp_path / "büro")}
    command = [sys.executable, "-m", "sinkbench", "settings"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"SINKBENCH_HOME={tmp_path}/b\\xfcro\n" in done.stdout
