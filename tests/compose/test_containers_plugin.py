"""A connector that is none of ours: a vendor's zip, and a connector file beside ours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from sinkbench.services.connect import ConnectCluster
from sinkbench.stack.compose import ComposeStack
from sinkbench.stack.tools import find_java, find_maven
from tests.support.commands import Run
from tests.support.latest import summary_of

HERE = Path(__file__).parent / "plugin"
PLAN = """
pipelines: [elasticsearch/http]
trials: 1
drain: {compiling_percent: 100, window_seconds: 5, pilot_seconds: 1.5, warm_up_seconds: 4}
"""


def a_vendors_zip(folder: Path, to: Path) -> None:
    """Camel's HTTP sink with all that it needs, as a vendor ships a plugin: one folder with its jars below lib/."""
    jars = folder / "camel-http-sink-0.10.1" / "lib"
    done = subprocess.run(
        [str(find_maven()), "-q", "-B", "-f", str(HERE / "pom.xml"), "package", f"-Dto={jars}"],
        env={"JAVA_HOME": str(find_java()), "PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    shutil.make_archive(str(to), "zip", folder)


def test_an_archive_that_is_broken_is_named_by_the_worker(stack: ComposeStack, compose: Run, checkout: Path) -> None:
    broken = checkout / "connect" / "plugins" / "half.zip"
    broken.write_bytes(b"PK\x03\x04 cut off here")
    try:
        said = compose("run", "--rm", "--no-deps", "connect").stderr
    finally:
        broken.unlink()
    assert "half.zip: cannot be unpacked" in said


def test_a_vendors_zip_and_a_connector_file_are_a_pipeline(
    stack: ComposeStack, compose: Run, sinkbench: Run, checkout: Path, tmp_path: Path
) -> None:
    archive = checkout / "connect" / "plugins" / "camel-http-sink-0.10.1"
    a_vendors_zip(tmp_path, archive)
    pipeline = checkout / "connectors" / "elasticsearch" / "http.json"
    shutil.copy(HERE / "http.json", pipeline)
    (checkout / "plans" / "http.yaml").write_text(PLAN)
    try:
        # One worker, which is sooner warm than three.
        done = compose("up", "--detach", "--wait", "--force-recreate", "--no-deps", "--scale", "connect=1", "connect")
        assert done.returncode == 0, done.stderr
        with ConnectCluster(stack.endpoints.connect.values()) as connect:
            assert "org.apache.camel.kafkaconnector.CamelSinkConnector" in connect.plugins()
        done = sinkbench("race", "plans/http.yaml")
        assert done.returncode == 0, done.stdout + done.stderr
        (cell,) = summary_of(checkout)["cells"]
        assert cell["passed"] is True
        assert cell["audit"]["stored"] > 0
        # One request a record: this component knows of no bulk.
        assert cell["records_per_write"] < 1.1
    finally:
        Path(f"{archive}.zip").unlink()
        pipeline.unlink()
