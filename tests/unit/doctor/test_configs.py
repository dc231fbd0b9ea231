"""What a connector's configuration says of itself."""

import json
from pathlib import Path

import pytest

from sinkbench.doctor.configs import Pool, leads_to, one_by_one, pool_of, sink_of
from sinkbench.settings import CHECKOUT
from sinkbench.sinks.jdbcurl import JdbcUrl, jdbc_url

FILES = sorted((CHECKOUT / "connectors").glob("*/*.json"))


def config_of(pipeline: str) -> dict[str, str]:
    config: dict[str, str] = json.loads((CHECKOUT / "connectors" / f"{pipeline}.json").read_text())["config"]
    return config


SINGLE = {"camel-index", "camel-idempotent", "camel-keyed", "camel-sql"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_sink_of_every_connector_file_is_its_folder_and_whether_it_sends_one_by_one_is_known(file: Path) -> None:
    config = json.loads(file.read_text())["config"]
    assert sink_of(config) == file.parent.name
    assert (pool_of(config) is not None) == (file.parent.name == "postgres")
    assert (one_by_one(config) is not None) == (file.stem in SINGLE)


def test_a_jdbc_url_is_taken_apart() -> None:
    url = "jdbc:postgresql://a:1,b/db?targetServerType=primary&x="
    expected = JdbcUrl("postgresql", ("a:1", "b"), "db", {"targetServerType": "primary", "x": ""})
    assert jdbc_url({"connection.url": url}) == jdbc_url({"camel.beans.pool.url": url}) == expected
    assert (jdbc_url({"connection.url": "http://a:1"}), jdbc_url({})) == (None, None)


def test_the_pool_of_a_task_is_known_by_its_connector() -> None:
    fix = "connection.pool.min_size and connection.pool.max_size"
    pools = {"jdbc": Pool(5, 32, fix), "jdbc-tuned": Pool(1, 32, fix), "confluent-jdbc": Pool(1, 1, "")}
    pools["camel-sql"] = Pool(1, 1, "camel.beans.pool.maxTotal")
    assert {name: pool_of(config_of(f"postgres/{name}")) for name in pools} == pools
    hikari = {"camel.beans.pool": "#class:com.zaxxer.hikari.HikariDataSource", "camel.beans.pool.url": "jdbc:a:b"}
    assert pool_of(hikari) == Pool(10, 10, "camel.beans.pool.maximumPoolSize")
    assert pool_of({"connector.class": "a.Sink", "connection.url": "jdbc:postgresql://a/b"}) is None


def test_a_url_that_leads_to_the_pooler_is_known_by_its_address_or_its_variable() -> None:
    raw = config_of("postgres/jdbc-pgbouncer")
    filled_in = {"connection.url": "jdbc:postgresql://pgbouncer:6432/bench"}
    assert leads_to(filled_in, raw, "127.0.0.1:16432") is True
    assert leads_to({"connection.url": "jdbc:postgresql://localhost:16432/bench"}, {}, "127.0.0.1:16432") is True
    assert leads_to({"connection.url": "jdbc:postgresql://localhost:15432/bench"}, {}, "127.0.0.1:16432") is False
    assert leads_to({"connection.url": "jdbc:postgresql://db/bench"}, {}, "db:5432") is True
    assert leads_to({"connection.url": "jdbc:postgresql://db/bench"}, {}, None) is False
    assert leads_to(config_of("elasticsearch/camel-bulk"), {}, "db:5432") is None


def test_an_aggregate_that_is_none_is_known() -> None:
    bulk = config_of("elasticsearch/camel-bulk")
    without = {key: value for key, value in bulk.items() if key != "camel.beans.aggregate"}
    assert "no camel.beans.aggregate" in str(one_by_one(without))
    assert "camel.aggregation.size is 1" in str(one_by_one({**bulk, "camel.aggregation.size": "1"}))
    single = {**config_of("postgres/jdbc"), "consumer.override.max.poll.records": "1"}
    assert "max.poll.records is 1" in str(one_by_one(single))
