"""A plugin as a vendor ships it: an archive that a test makes of what Maven has."""

import shutil
import subprocess
from pathlib import Path

from sinkbench.settings import CHECKOUT
from sinkbench.stack.tools import find_java, find_program

PLUGIN = CHECKOUT / "tests" / "compose" / "plugin"
VERSION = "0.10.1"
"""Of the Camel sink in it, which is none of the stack's."""


def a_vendors_zip(folder: Path, into: Path) -> Path:
    """Camel's HTTP sink with all that it needs, as a vendor ships a plugin, in `into`: one folder, made in `folder`."""
    name = f"camel-http-sink-{VERSION}"
    jars = folder / name / "lib"
    done = subprocess.run(
        [str(find_program("mvn", "maven")), "-q", "-B", "-f", str(PLUGIN / "pom.xml"), "package", f"-Dto={jars}"],
        env={"JAVA_HOME": str(find_java()), "PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return Path(shutil.make_archive(str(into / name), "zip", folder))
