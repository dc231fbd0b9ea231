"""A stack that a test needs for itself."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sinkbench.settings import load_settings
from sinkbench.stack.home import Home
from sinkbench.stack.local import LocalStack
from tests.support.commands import QUICKLY_COMPILED, skip_without_memory


@contextmanager
def own_stack(folder: str, offset: int, **more: str) -> Iterator[LocalStack]:
    """A stack without data that is down, in a folder of its own, with ports at an offset, and `more` settings, as
    TOPOLOGY, which are also in the environment. What a test starts of it is ended, and its data removed. The test is
    skipped where the machine has too little memory."""
    usual = load_settings()
    where = {"STACK": "local", "HOME": str(usual.home / folder), "DIST": str(usual.dist)}
    options = {"JAVA_OPTIONS": QUICKLY_COMPILED, "PORT_OFFSET": str(usual.port_offset + offset)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**where, **options, **more}.items():
            patch.setenv(f"SINKBENCH_{name}", value)
        settings = load_settings()
        skip_without_memory(settings.layout)
        stack = LocalStack(settings)
        stack.down()
        shutil.rmtree(Home(settings).data, ignore_errors=True)
        try:
            yield stack
        finally:
            stack.down()
            shutil.rmtree(Home(settings).data, ignore_errors=True)
