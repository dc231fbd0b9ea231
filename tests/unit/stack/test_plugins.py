"""The jars of plugins, in folders as Kafka Connect has them."""

from __future__ import annotations

import zipfile
from pathlib import Path

from sinkbench.stack.plugins import MANIFEST, jars_of


def test_a_connectors_jars_are_those_of_its_plugin(tmp_path: Path) -> None:
    for plugin, kind in (("one", "a.Sink"), ("two", "b.Sink")):
        (tmp_path / plugin / "lib").mkdir(parents=True)
        (tmp_path / plugin / f"driver-{plugin}.jar").write_bytes(b"no archive")
        with zipfile.ZipFile(tmp_path / plugin / "lib" / "sink.jar", "w") as jar:
            jar.writestr(MANIFEST, f"# made by hand\n{kind}\n")
    found = jars_of([tmp_path / "absent", tmp_path])
    assert found == {"a.Sink": ("driver-one.jar", "sink.jar"), "b.Sink": ("driver-two.jar", "sink.jar")}
