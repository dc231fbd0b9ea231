"""Plugins that a worker in a container refuses."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sinkbench.stack.compose import ComposeStack
from tests.support.commands import Run

SHIPPED, OTHER = b"what a vendor has shipped", b"something else"


@pytest.mark.parametrize(
    ("content", "checksum", "said"),
    [
        (b"PK\x03\x04 cut off here", None, "mine.zip: cannot be unpacked"),
        (SHIPPED, OTHER, f"mine.zip: its SHA-512 is {hashlib.sha512(SHIPPED).hexdigest()}"),
    ],
)
def test_an_archive_that_cannot_be_used_is_named_by_the_worker(
    content: bytes, checksum: bytes | None, said: str, stack: ComposeStack, compose: Run, checkout: Path
) -> None:
    archive = checkout / "connect" / "plugins" / "mine.zip"
    of_it = archive.with_name("mine.zip.sha512")
    archive.write_bytes(content)
    if checksum is not None:
        of_it.write_text(hashlib.sha512(checksum).hexdigest())
    try:
        assert said in compose("run", "--rm", "--no-deps", "connect").stderr
    finally:
        archive.unlink()
        of_it.unlink(missing_ok=True)
