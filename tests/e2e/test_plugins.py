"""Plugins that are none of ours: a vendor's archive with its checksum, and one that is not there."""

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sinkbench.errors import StackError
from sinkbench.stack.local import LocalStack
from tests.support.commands import Run, refuses
from tests.support.vendorzip import VERSION, a_vendors_zip

WORKER = "connect-3"


@pytest.fixture
def plugins(stack: LocalStack) -> Iterator[Path]:
    """The folder that a worker takes plugins from at its next start; as it was after the test, and so is the worker."""
    folder = stack.home / "services" / "connect" / "plugins"
    before = {*folder.iterdir()}
    yield folder
    for added in {*folder.iterdir()} - before:
        added.unlink()
    stack.faults.do("stop", WORKER)
    stack.faults.do("start", WORKER)


def versions_of(stack: LocalStack, plugin: str) -> set[str]:
    """The versions in which the worker has a plugin."""
    found = httpx.get(f"{stack.endpoints.connect[WORKER]}/connector-plugins", timeout=60).json()
    return {each["version"] for each in found if each["class"].endswith(plugin)}


@pytest.mark.long
@pytest.mark.rare
def test_a_vendors_archive_is_a_plugin_once_its_checksum_agrees(
    stack: LocalStack, plugins: Path, tmp_path: Path
) -> None:
    archive = a_vendors_zip(tmp_path, plugins)
    checksum = archive.with_name(f"{archive.name}.sha256")
    archive.chmod(0o644)
    assert versions_of(stack, "CamelSinkConnector") == {"0.11.0"}
    stack.faults.do("stop", WORKER)
    whole = archive.read_bytes()
    for content, line, said in (
        (whole[:1000], f"{hashlib.sha256(whole[:1000]).hexdigest()}  {archive.name}\n", "cannot be unpacked"),
        (whole, f"{'0' * 64}  {archive.name}\n", "its SHA-256 is"),
    ):
        archive.write_bytes(content)
        checksum.write_text(line)
        with pytest.raises(StackError, match=rf"{WORKER} died while starting .*(\n.*)*{archive.name}: {said}"):
            stack.faults.do("start", WORKER)
    checksum.write_text(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n")
    temporary = set(Path(tempfile.gettempdir()).iterdir())
    stack.faults.do("start", WORKER)
    assert versions_of(stack, "CamelSinkConnector") == {"0.11.0", VERSION}
    left = set(Path(tempfile.gettempdir()).iterdir()) - temporary
    assert not [file for file in left if file.name.startswith(("final-flags", "connect-plugin-path"))]


def test_a_race_whose_plugin_is_not_there_says_where_to_install_it(
    stack: LocalStack, sinkbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text("pipelines: [postgres/confluent-jdbc]\n")
    (said,) = refuses(sinkbench("race", "mine.yaml")).stderr.splitlines()
    assert "install it in connect/plugins and restart the workers (docs/pipelines.md)" in said
    assert not (tmp_path / "results" / "latest").exists()
