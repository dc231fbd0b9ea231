"""A stack of a topology that a test needs for itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from sinkbench.settings import load_settings
from sinkbench.stack.local import LocalStack
from sinkbench.topology import needed_bytes
from tests.support.commands import QUICKLY_COMPILED

__all__ = ["own_stack"]


@contextmanager
def own_stack(topology: str, folder: str, offset: int) -> Iterator[LocalStack]:
    """A stack that is down, beside whatever else is up; what a test starts of it is ended, and its data removed.

    Its settings are also in the environment, for the commands that a test starts. The test is skipped where the
    machine has too little memory.

    Args:
        topology: the name of a shipped one, or the path of a file.
        folder: its own folder.
        offset: how far its ports are from the usual ones.
    """
    usual = load_settings()
    home = usual.home / folder
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            **{"STACK": "local", "TOPOLOGY": topology, "HOME": str(home), "DIST": str(usual.dist)},
            **{"JAVA_OPTIONS": QUICKLY_COMPILED, "PORT_OFFSET": str(usual.port_offset + offset)},
        }.items():
            patch.setenv(f"SINKBENCH_{name}", value)
        settings = load_settings()
        if psutil.virtual_memory().available < needed_bytes(settings.layout):
            pytest.skip(f"this topology needs {needed_bytes(settings.layout) / 1e9:.1f} GB of memory")
        stack = LocalStack(settings)
        stack.down()
        try:
            yield stack
        finally:
            stack.down()
            for data in home.glob("data-*"):
                shutil.rmtree(data)
