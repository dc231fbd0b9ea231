"""Puts into a wheel what the checkout has beside its packages: the data files, and the commit that it is built from."""

import os
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
FOLDERS = (
    *("claims", "connect", "connectors", "elasticsearch", "kafka", "kubernetes", "local", "plans", "postgres"),
    *("queries", "topologies", "toxiproxy"),
)
# The modes of files are in the wheel: the same bytes for every user.
os.umask(0o022)


def ignored(folder: str, names: list[str]) -> set[str]:
    """What is compiled, tests, and the user's own plugins."""
    own = Path(folder) == ROOT / "connect" / "plugins"
    return {each for each in names if each in ("target", "test", "__pycache__") or (own and each != "README.md")}


def git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()


class BuildWithData(build_py):
    """The folder `checkout` inside the package, which sinkbench/place.py finds. An editable installation has none."""

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        # Else files that are gone since would be in the wheel.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        inside = Path(self.build_lib) / "sinkbench" / "checkout"
        for name in FOLDERS:
            shutil.copytree(ROOT / name, inside / name, ignore=ignored)
        # A folder above an unpacked archive may be another repository.
        commit = git("rev-parse", "HEAD") if (ROOT / ".git").exists() else ""
        changed = commit and git("status", "--porcelain", "--untracked-files=no")
        (inside / "COMMIT").write_text(commit + ("+" if changed else ""), encoding="utf-8")
        for path in Path(self.build_lib).rglob("*"):
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


setup(cmdclass={"build_py": BuildWithData})
