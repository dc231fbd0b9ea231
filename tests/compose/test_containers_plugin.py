"""A connector that is none of ours: a vendor's zip, and a connector file beside ours."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from sinkbench.services.connect import ConnectCluster
from sinkbench.stack.compose import ComposeStack
from tests.support.commands import Run
from tests.support.latest import summary_of
from tests.support.vendorzip import PLUGIN, a_vendors_zip

PLAN = """
pipelines: [elasticsearch/http]
trials: 1
drain: {compiling_percent: 100, window_seconds: 5, pilot_seconds: 1.5, warm_up_seconds: 4}
"""


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


def test_a_vendors_zip_and_a_connector_file_are_a_pipeline(
    stack: ComposeStack, compose: Run, sinkbench: Run, checkout: Path, tmp_path: Path
) -> None:
    archive = a_vendors_zip(tmp_path, checkout / "connect" / "plugins")
    checksum = archive.with_name(f"{archive.name}.sha256")
    checksum.write_text(hashlib.sha256(archive.read_bytes()).hexdigest())
    pipeline = checkout / "connectors" / "elasticsearch" / "http.json"
    shutil.copy(PLUGIN / "http.json", pipeline)
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
        archive.unlink()
        checksum.unlink()
        pipeline.unlink()
