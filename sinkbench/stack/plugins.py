"""The jars beside each sink connector, in folders of plugins."""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["jars_of"]

MANIFEST = "META-INF/services/org.apache.kafka.connect.sink.SinkConnector"


def jars_of(folders: Iterable[Path]) -> dict[str, tuple[str, ...]]:
    """The names of the jars in the plugin of each sink connector, by its class.

    Args:
        folders: each with a folder for each plugin, whose jars name their connectors in a service manifest. One that is
            not there, or cannot be read, holds none.
    """
    found: dict[str, tuple[str, ...]] = {}
    for folder in folders:
        with suppress(OSError):
            for plugin in sorted(path for path in folder.iterdir() if path.is_dir()):
                jars = sorted(plugin.rglob("*.jar"))
                names = tuple(jar.name for jar in jars)
                found |= {kind: names for jar in jars for kind in _connectors(jar)}
    return found


@functools.cache
def _connectors(jar: Path) -> tuple[str, ...]:
    """The sink connectors that a jar's manifest names. Read once: there are hundreds of jars, which nobody changes."""
    try:
        with zipfile.ZipFile(jar) as opened:
            lines = opened.read(MANIFEST).decode("utf-8", errors="replace").splitlines()
    except (KeyError, OSError, zipfile.BadZipFile):
        return ()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
