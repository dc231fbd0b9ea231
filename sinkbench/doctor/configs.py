"""What a connector's configuration says about its sink, connection pool and batching. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from sinkbench.analysis.connectors import REFERENCE_BULK, REFERENCE_COPY
from sinkbench.sinks.jdbcurl import POOLER, given, jdbc_url, pool_bean

DEBEZIUM = "io.debezium.connector.jdbc.JdbcSinkConnector"
# These keep one connection for each task.
OF_ONE = ("io.aiven.connect.jdbc.JdbcSinkConnector", "io.confluent.connect.jdbc.JdbcSinkConnector", REFERENCE_COPY)
CAMEL_URL = "camel.sink.url"
# JDBC names of databases that differ from the sink's name.
_SCHEMES = {"postgresql": "postgres"}


@dataclass(frozen=True)
class Pool:
    """Connections of one task: opened at once and at most, and the setting that lowers them ("" if there is none)."""

    least: int
    most: int
    fix: str


def sink_of(config: Mapping[str, str]) -> str | None:
    """Name of the sink that a configuration writes to; None if unknown."""
    if (url := jdbc_url(config)) is not None:
        return _SCHEMES.get(url.kind, url.kind)
    kind = config.get("connector.class", "")
    # The OpenSearch connector is a fork of the Elasticsearch one, with the same configuration.
    if config.get(CAMEL_URL, "").startswith("elasticsearch:") or "Elasticsearch" in kind or "Opensearch" in kind:
        return "elasticsearch"
    return None


def pool_of(config: Mapping[str, str]) -> Pool | None:
    """The connection pool of each task of a JDBC connector; None if it has none or its class is unknown."""
    kind = config.get("connector.class", "")
    if kind == DEBEZIUM:
        least = _number(config, "connection.pool.min_size", 5)
        most = _number(config, "connection.pool.max_size", 32)
        return Pool(least, max(least, most), "connection.pool.min_size and connection.pool.max_size")
    if kind in OF_ONE:
        return Pool(1, 1, "")
    if (bean := pool_bean(config)) is None:
        return None
    made = config.get(bean, "")
    if made.endswith("BasicDataSource"):
        return Pool(1, _number(config, f"{bean}.maxTotal", 8), f"{bean}.maxTotal")
    if made.endswith("HikariDataSource"):
        most = _number(config, f"{bean}.maximumPoolSize", 10)
        return Pool(min(most, _number(config, f"{bean}.minimumIdle", most)), most, f"{bean}.maximumPoolSize")
    return None


def leads_to(config: Mapping[str, str], raw: Mapping[str, str], pooler: str | None) -> bool | None:
    """Whether a JDBC URL leads to the pooler at `pooler` (host:port); None without such a URL. `raw` is the
    configuration before its variables are filled in: within a container network the pooler has another address."""
    if (url := jdbc_url(config)) is None:
        return None
    return POOLER in given(raw)[0] or (pooler is not None and url.leads_to(pooler))


def one_by_one(config: Mapping[str, str]) -> str | None:
    """Why a connector sends one request or statement per record, with the setting; None if it batches."""
    if (url := config.get(CAMEL_URL)) is not None:
        return _camel_one_by_one(url, config)
    for key in ("batch.size", "batch.records", "consumer.override.max.poll.records"):
        if _number(config, key, 500) <= 1:
            return f"{key} is {config[key]}; raise it to 500 or more"
    return None


def _camel_one_by_one(url: str, config: Mapping[str, str]) -> str | None:
    scheme, options = url.partition(":")[0], dict(parse_qsl(url.partition("?")[2]))
    batch = {"elasticsearch": ("operation", "Bulk"), "sql": ("batch", "true")}.get(scheme)
    if batch is not None and options.get(batch[0], "").lower() != batch[1].lower():
        was = f"{batch[0]}={options[batch[0]]}" if batch[0] in options else f"no {batch[0]}"
        return f"{CAMEL_URL} has {was}; set {batch[0]}={batch[1]}, and an aggregate as in camel-bulk.json"
    if "camel.beans.aggregate" not in config:
        return "there is no camel.beans.aggregate, without which camel.aggregation.size does nothing; set it"
    if _number(config, "camel.aggregation.size", 10) <= 1:
        return f"camel.aggregation.size is {config['camel.aggregation.size']}; raise it to 500 or more"
    return None


def batch_of(config: Mapping[str, str]) -> tuple[str, int] | None:
    """The key of a batch's size in records, and the size; None if the file has none."""
    keys = ("camel.aggregation.size",) if CAMEL_URL in config else ("batch.size", "batch.records")
    sizes = ((key, _number(config, key, 0)) for key in keys)
    return next((each for each in sizes if each[1] > 0), None)


def poll_of(config: Mapping[str, str], partitions: float, record_bytes: float | None) -> tuple[str, int]:
    """What limits a poll, of the task's partitions together, and to how many records, by Kafka's defaults."""
    override = "consumer.override."
    limits = {f"{override}max.poll.records": float(_number(config, f"{override}max.poll.records", 500))}
    if record_bytes:
        each = _number(config, f"{override}max.partition.fetch.bytes", 1 << 20) * partitions
        limits[f"{override}max.partition.fetch.bytes"] = each / record_bytes
        limits[f"{override}fetch.max.bytes"] = _number(config, f"{override}fetch.max.bytes", 50 << 20) / record_bytes
    key = min(limits, key=lambda name: limits[name])
    return key, max(round(limits[key]), 1)


def request_bytes(config: Mapping[str, str], partitions: float, record_bytes: float | None) -> tuple[str, int] | None:
    """What limits the reference connector's bulk requests, and to how many bytes; None if that is not known."""
    if config.get("connector.class") != REFERENCE_BULK or record_bytes is None:
        return None
    poll, records = poll_of(config, partitions, record_bytes)
    records = min(records, _number(config, "batch.records", 5_000))
    limits = {poll: round(records * record_bytes), "batch.bytes": _number(config, "batch.bytes", 5_000_000)}
    return min(limits.items(), key=lambda each: each[1])


def _number(config: Mapping[str, str], key: str, default: int) -> int:
    # Connect itself refuses values that are no number; a variable that is not filled in is unknown.
    text = str(config.get(key, "")).strip()
    return int(text) if text.lstrip("-").isdigit() else default
