"""What Maven has fetched, in a place with a space in its path."""

import shutil
from pathlib import Path

import pytest

from sinkbench.settings import CHECKOUT, Settings
from sinkbench.stack.local import LocalStack
from sinkbench.stack.tools import find_java, make_manifests

SHIM = "connect-plugin-path-shim*"
PLUGIN = "camel"


@pytest.mark.long
def test_plugins_get_their_manifests_in_a_path_with_a_space(
    stack: LocalStack, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist = tmp_path / "a place" / "dist"
    dist.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(dist.parent))
    (dist / "kafka").symlink_to(settings.dist / "kafka")
    # One plugin will do: the tool scans all classes of each.
    shutil.copytree(settings.dist / "plugins" / PLUGIN, dist / "plugins" / PLUGIN, ignore=shutil.ignore_patterns(SHIM))
    assert list(dist.rglob(SHIM)) == []
    make_manifests(CHECKOUT, find_java(), dist)
    assert {shim.parent.name for shim in dist.rglob(SHIM)} == {PLUGIN}
