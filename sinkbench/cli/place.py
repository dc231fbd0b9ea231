"""Whether this is the program of the checkout that it was called in: a virtual environment cannot be moved."""

from __future__ import annotations

from pathlib import Path

from sinkbench.errors import SettingsError


def check_place(program: Path, prefix: Path) -> None:
    """Raises SettingsError if the `program` that was called is in another virtual environment than `prefix`."""
    called = program.absolute().parent.parent
    if (called / "pyvenv.cfg").exists() and not called.samefile(prefix):
        raise SettingsError(
            f"{program}: is a program of {prefix}, so this checkout was moved or copied; run its scripts/setup, which"
            " makes .venv anew"
        )
