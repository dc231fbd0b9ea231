"""What a race says of a connector that only its vendor ships."""

from __future__ import annotations

import json

import pytest

from sinkbench.race.vendors import ARCHIVES, Archive, how_to_install
from sinkbench.settings import CHECKOUT
from sinkbench.stack.localnodes import PLUGINS

FILES = sorted((CHECKOUT / "connectors").glob("*/*.json"))
PAGE = (CHECKOUT / "docs" / "pipelines.md").read_text(encoding="utf-8")


def test_each_connector_file_is_of_a_plugin_that_is_there_or_of_one_whose_archive_is_known() -> None:
    classes = {json.loads(file.read_text())["config"]["connector.class"] for file in FILES}
    assert classes == {*PLUGINS, *ARCHIVES}


def test_it_names_the_archive_its_folder_and_the_place_of_its_checksum() -> None:
    said = how_to_install("io.confluent.connect.jdbc.JdbcSinkConnector", shared=False)
    for part in (
        "confluentinc-kafka-connect-jdbc-VERSION.zip into connect/plugins",
        ".sha256",
        "start the workers anew",
    ):
        assert part in said


def test_on_workers_of_others_it_does_not_name_a_folder_of_ours() -> None:
    said = how_to_install("io.aiven.connect.jdbc.JdbcSinkConnector", shared=True)
    assert said == "install Aiven's jdbc-connector-for-apache-kafka-VERSION.zip on every worker"
    assert how_to_install("a.B", shared=True) == "install it on every worker"


def test_a_connector_that_nobody_knows_still_has_its_folder() -> None:
    assert how_to_install("a.B", shared=False).startswith("put it into connect/plugins")


@pytest.mark.parametrize("archive", ARCHIVES.values(), ids=lambda archive: archive.file)
def test_the_page_names_each_archive(archive: Archive) -> None:
    assert f"`{archive.file}`" in PAGE
