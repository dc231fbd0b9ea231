"""The scripts that start services, without a service: a path may have any letters, and the caller any locale."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sinkbench.settings import CHECKOUT

# Stands in for Java: prints its locale, and the worker's properties, its last argument.
JAVA = '#!/bin/sh\necho "LC_ALL=$LC_ALL"\nfor last; do :; done\ncat "$last"\n'
LOCALES: list[dict[str, str]] = [{}, {"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LC_ALL": "C.UTF-8"}]


@pytest.mark.parametrize("locale", LOCALES, ids=str)
def test_a_worker_finds_plugins_below_a_folder_of_any_name_in_any_locale(
    locale: dict[str, str], tmp_path: Path
) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA)
    java.chmod(0o755)
    plugins = f"{tmp_path}/büro test/\\x/😀/plugins"
    environment = {
        "PATH": "/usr/bin:/bin",
        "JAVA_HOME": str(java.parent.parent),
        "CONNECT_PLUGINS": plugins,
        "CONNECT_USER_PLUGINS": str(CHECKOUT / "connect" / "plugins"),
        "CONNECT_DATA": str(tmp_path / "data"),
        "CONNECT_BASE_PORT": "1",
        "CONNECT_METRICS_BASE_PORT": "1",
        "CONNECT_WORKER": "1",
        "CONNECT_HEAP": "1m",
        "CONNECT_LISTEN": "127.0.0.1",
        "CONNECT_METRICS_AGENT": "agent.jar",
        "KAFKA_LIBS": "libs",
        **locale,
    }
    done = subprocess.run([CHECKOUT / "connect" / "run"], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    said = done.stdout.decode("ascii").splitlines()
    assert said[0] == "LC_ALL=C.UTF-8"
    (path,) = (line.removeprefix("plugin.path=") for line in said if line.startswith("plugin.path="))
    # As Java reads a properties file.
    assert path.encode("ascii").decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16") == plugins
