"""Facts for the doctor's rules, in which nothing is the matter unless a test says so."""

from typing import Any

from sinkbench.doctor.diagnosis import Connector, Diagnosis, Facts, Found, Machine, diagnose
from sinkbench.doctor.progress import Offsets, Progress
from sinkbench.doctor.rules import RULES
from sinkbench.sinks.jdbcurl import jdbc_url
from sinkbench.sinks.values import Database, DataNode, Pooler, SearchCluster, SinkPooling, SinkState

GIGABYTE = 10**9
URL = "jdbc:postgresql://127.0.0.1:15432/bench"


def found(seen: Facts, code: str) -> list[Found]:
    """What the rule of that code finds."""
    return [each for each in diagnosis(seen).findings if each.code == code]


def diagnosis(seen: Facts) -> Diagnosis:
    """What all rules find."""
    return diagnose(seen, RULES)


def database(**given: Any) -> Database:
    """One that takes 100 connections, of which 3 are reserved and none is used."""
    return Database(**{**{"most_connections": 100, "reserved": 3, "used": 0, "by_jdbc": 0}, **given})


def pooler(**given: Any) -> Pooler:
    """One in transaction mode, with a pool of 10."""
    usual = {"address": "127.0.0.1:16432", "settings": SinkPooling("transaction", 10, 0)}
    return Pooler(**{**usual, "most_clients": 2_000, "clients": 0, **given})


def cluster(**of_the_node: Any) -> SearchCluster:
    """One with a data node whose disk is half full."""
    usual = {"name": "node-1", "disk_bytes": 100 * GIGABYTE, "free_bytes": 50 * GIGABYTE}
    return SearchCluster((DataNode(**{**usual, **of_the_node}),), {"low": "85%", "high": "90%", "flood": "95%"})


def jdbc(name: str = "jdbc", tasks: int = 3, url: str = URL, **given: Any) -> Connector:
    """A connector of Debezium's with a pool of one connection a task."""
    config = {
        **{"connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector", "topics": "tides", "connection.url": url},
        **{"connection.pool.min_size": "1", "connection.pool.max_size": "1"},
        **given.pop("config", {}),
    }
    return _connector(name, tasks, config, **{"sink": "postgres", "pooled": False, "url": jdbc_url(config), **given})


def search(name: str = "bulk", tasks: int = 3, **given: Any) -> Connector:
    """A Camel sink that sends bulks to Elasticsearch."""
    config = {
        **{"connector.class": "org.apache.camel.kafkaconnector.CamelSinkConnector", "topics": "tides"},
        "camel.sink.url": "elasticsearch://a?operation=Bulk&indexName=tides",
        **{"camel.beans.aggregate": "#class:a.Strategy", "camel.aggregation.size": "500"},
        **given.pop("config", {}),
    }
    return _connector(name, tasks, config, **{"sink": "elasticsearch", **given})


def _connector(name: str, tasks: int, config: dict[str, str], **given: Any) -> Connector:
    """One whose tasks, unless it is only planned, are spread evenly over three workers."""
    placed = {} if given.get("planned") else {f"connect-{n + 1}": len(range(n, tasks, 3)) for n in range(3)}
    usual = {"name": name, "label": name, "config": config, "tasks": tasks}
    return Connector(**{**usual, **({"placement": placed} if placed else {}), **given})


def progress(*committed: int, end: int = 1_000, grows: int = 0, seconds: float = 66, **given: Any) -> Progress:
    """Two readings of partitions of `end` records, in the later `grows` more: 100 each committed, and then these."""
    last = {("tides", number): Offsets(0, at, end + grows) for number, at in enumerate(committed)}
    first = {partition: Offsets(0, 100, end) for partition in last}
    return Progress(((0.0, first), (seconds, last)), **given)


def facts(**given: Any) -> Facts:
    """A stack of three workers on which nothing runs and nothing is the matter."""
    sinks = {"elasticsearch": SinkState(cluster=cluster()), "postgres": SinkState(database=database(), pooler=pooler())}
    machine = Machine(available_bytes=10 * GIGABYTE, free_bytes=50 * GIGABYTE, least_free_bytes=4 * GIGABYTE)
    return Facts(**{"workers": 3, "worker": "http://127.0.0.1:18083", "sinks": sinks, "machine": machine, **given})
