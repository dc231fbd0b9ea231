"""Where sinkbench's files lie, and where an installed sinkbench keeps its state."""

import os
from pathlib import Path

_INSTALLED = Path(__file__).resolve().parent / "checkout"
IS_INSTALLED = _INSTALLED.is_dir()
"""Whether this is an installed wheel, which has the checkout's data files inside (setup.py)."""
CHECKOUT = _INSTALLED if IS_INSTALLED else Path(__file__).resolve().parent.parent
"""The folder with `plans`, `connectors` and the services' files; read-only in an installed sinkbench."""
BASE = Path.cwd() if IS_INSTALLED else CHECKOUT
"""The folder of `.env` and of relative paths in settings."""


def data_folder() -> Path:
    """The user's data folder, as the XDG base directory specification has it."""
    given = Path(os.environ.get("XDG_DATA_HOME", ""))
    # The specification has relative paths ignored.
    return (given if given.is_absolute() else Path.home() / ".local" / "share") / "sinkbench"
