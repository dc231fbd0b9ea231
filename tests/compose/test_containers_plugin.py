"""Plugins that a worker in a container refuses."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sinkbench.stack.compose import ComposeStack
from tests.support.commands import Run


def test_an_archive_that_is_broken_is_named_by_the_worker(stack: ComposeStack, compose: Run, checkout: Path) -> None:
    broken = checkout / "connect" / "plugins" / "half.zip"
    broken.write_bytes(b"PK\x03\x04 cut off here")
    try:
        said = compose("run", "--rm", "--no-deps", "connect").stderr
    finally:
        broken.unlink()
    assert "half.zip: cannot be unpacked" in said


def test_an_archive_that_is_not_that_of_its_checksum_is_refused_by_the_worker(
    stack: ComposeStack, compose: Run, checkout: Path
) -> None:
    other = checkout / "connect" / "plugins" / "other.zip"
    checksum = other.with_name("other.zip.sha512")
    other.write_bytes(b"what a vendor has shipped")
    checksum.write_text(hashlib.sha512(b"something else").hexdigest())
    try:
        said = compose("run", "--rm", "--no-deps", "connect").stderr
    finally:
        other.unlink()
        checksum.unlink()
    assert f"other.zip: its SHA-512 is {hashlib.sha512(b'what a vendor has shipped').hexdigest()}" in said
