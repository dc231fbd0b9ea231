"""Connectors that only their vendors ship, as archives: what to put where. Pure."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ARCHIVES", "Archive", "how_to_install"]

_FOLDER = "connect/plugins"
_PAGE = "docs/pipelines.md"


@dataclass(frozen=True)
class Archive:
    """What a vendor ships a connector as.

    Attributes:
        vendor: who ships it.
        file: the archive's name; VERSION stands for its version.
    """

    vendor: str
    file: str


ARCHIVES = {
    "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector": Archive(
        "Confluent", "confluentinc-kafka-connect-elasticsearch-VERSION.zip"
    ),
    "io.confluent.connect.jdbc.JdbcSinkConnector": Archive("Confluent", "confluentinc-kafka-connect-jdbc-VERSION.zip"),
    "io.aiven.connect.jdbc.JdbcSinkConnector": Archive("Aiven", "jdbc-connector-for-apache-kafka-VERSION.zip"),
    "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector": Archive(
        "Aiven", "opensearch-connector-for-apache-kafka-VERSION.zip"
    ),
}
"""By the connector's class."""


def how_to_install(connector: str, *, shared: bool) -> str:
    """How a connector that Connect lacks gets onto the workers, in words that follow a semicolon.

    Args:
        connector: its class.
        shared: whether the workers are somebody else's, and sinkbench starts none.
    """
    found = ARCHIVES.get(connector)
    what = "it" if found is None else f"{found.vendor}'s {found.file}"
    if shared:
        return f"install {what} on every worker"
    if found is None:
        return f"put it into {_FOLDER} and start the workers anew ({_PAGE})"
    return (
        f"put {what} into {_FOLDER}, its checksum beside it in a file of the same name with .sha256 (or .sha512,"
        f" .sha1) at the end, and start the workers anew ({_PAGE})"
    )
