"""Kafka's sustained limit: the published figures, the formula's properties, and sizes that are none."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.size.kafka import Cluster, fewest_brokers
from tests.support.commands import Command

# Of AWS's sizing article: its tables and text, with what its 80 % are printed as.
PUBLISHED = list(csv.DictReader((Path(__file__).parent / "published.csv").read_text(encoding="utf-8").splitlines()))
MB = st.floats(1, 1e5)
CLUSTERS = st.builds(
    lambda replicas, more, groups, *mb: Cluster(replicas + more, replicas, groups, *mb),
    *(st.integers(1, 5), st.integers(0, 20), st.integers(0, 9), MB, MB, MB),
)


@pytest.mark.parametrize("given", PUBLISHED, ids=lambda given: "-".join(list(given.values())[:6]))
def test_every_published_figure_is_met_to_the_megabyte(given: dict[str, str]) -> None:
    counts, sizes = ("brokers", "replicas", "groups"), ("storage_mb", "storage_network_mb", "network_mb")
    cluster = Cluster(*(int(given[name]) for name in counts), *(float(given[name]) for name in sizes))
    assert cluster.limit_mb == pytest.approx(float(given["limit_mb"]))
    assert round(0.8 * cluster.limit_mb) == int(given["printed_mb"])
    assert " and ".join(cluster.binds) == given["binds"]
    assert fewest_brokers(cluster, 0.8 * cluster.limit_mb, 0.8).brokers == cluster.brokers


def test_all_published_figures_are_there() -> None:
    assert len(PUBLISHED) == 33


@given(CLUSTERS, st.integers(2, 9))
def test_the_limit_grows_linearly_with_brokers(cluster: Cluster, times: int) -> None:
    larger = replace(cluster, brokers=times * cluster.brokers)
    assert (larger.limit_mb, larger.binds) == (pytest.approx(times * cluster.limit_mb), cluster.binds)


@given(CLUSTERS)
def test_the_limit_falls_with_replicas_and_with_groups(cluster: Cluster) -> None:
    more = replace(cluster, replicas=cluster.replicas + 1, brokers=cluster.brokers + 1)
    assert more.limit_mb / more.brokers <= cluster.limit_mb / cluster.brokers
    assert replace(cluster, groups=cluster.groups + 1).limit_mb <= cluster.limit_mb
    if cluster.binds != ["network"]:
        assert replace(cluster, groups=0).limit_mb == pytest.approx(cluster.limit_mb)


@given(MB, MB, MB, st.integers(1, 9))
def test_nothing_leaves_one_replica_that_nobody_reads(storage: float, link: float, network: float, count: int) -> None:
    alone = Cluster(count, 1, 0, storage, link, network)
    assert math.isinf(alone.terms["network"])
    assert alone.limit_mb == pytest.approx(count * min(storage, link))
    assert replace(alone, groups=1).terms["network"] == pytest.approx(count * network)


@given(CLUSTERS, st.floats(0.1, 1e6), st.floats(0.1, 1))
def test_the_fewest_brokers_are_enough_and_one_fewer_is_not(cluster: Cluster, rate: float, share: float) -> None:
    found = fewest_brokers(cluster, rate, share)
    assert share * found.limit_mb >= rate * (1 - 1e-6)
    if found.brokers > found.replicas:
        assert share * replace(found, brokers=found.brokers - 1).limit_mb < rate


OF_EACH = ["--storage-mb", "250", "--storage-network-mb", "81.25", "--network-mb", "96", "--groups", "2"]


def test_a_sweep_has_a_row_a_cluster_and_a_rate_its_fewest_brokers(sinkbench: Command) -> None:
    asked = ["size", "kafka", *OF_EACH, "--brokers", "3..12", "--rate", "20000", "--bytes", "4096"]
    lines = sinkbench.done(*asked).splitlines()
    assert [line.split()[0] for line in lines if line[0].isdigit()] == [*map(str, range(3, 13))]
    assert lines[-3] == "Fewest brokers for 82 MB/s at 80 %: 5 (68 % of 120 MB/s; network binds)"
    assert max(map(len, lines)) <= 100
    found = json.loads(sinkbench.done(*asked, "--json"))
    assert (found["rate_mb"], found["fewest"]["brokers"], len(found["clusters"])) == (81.92, 5, 10)
    found = json.loads(sinkbench.done("size", "kafka", *OF_EACH, "--rate-mb", 57.6, "--json"))
    assert found["fewest"]["brokers"] == 3


def test_a_limit_that_is_infinite_is_none_in_json(sinkbench: Command) -> None:
    alone = ["--brokers", "1", "--replicas", "1", "--groups", "0", "--storage-mb", "250", "--network-mb", "96"]
    assert sinkbench.done("size", "kafka", *alone).count("no limit") == 2
    found = json.loads(sinkbench.done("size", "kafka", *alone, "--json"))
    assert found["clusters"][0]["terms_mb"]["network"] is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("--brokers 3 --storage-mb 0", "'--storage-mb': Input should be greater"),
        ("--brokers 3 --storage-mb nan", "'--storage-mb': Input should be"),
        ("--brokers 0", "--brokers 0: must be"),
        ("--brokers 12..3", "--brokers 12..3: must be"),
        ("--brokers 1..1000", "up to 30"),
        ("--brokers many", "as 3..12"),
        ("--brokers 2", "cannot hold 3 replicas"),
        ("--brokers 3 --replicas 0", "'--replicas': Input should be"),
        ("--brokers 3 --groups -1", "'--groups': Input should be"),
        ("--brokers 3 --utilization 80", "'--utilization': Input should be less"),
        ("--rate inf --bytes 100", "'--rate': Input should be less"),
        ("--rate 100", "--rate: a rate is"),
        ("--rate-mb 5 --bytes 100", "--bytes and --rate-mb: a rate is"),
        ("", "needs --brokers for a limit, or a rate"),
    ],
)
def test_a_size_that_is_none_ends_with_one_line(asked: str, words: str, sinkbench: Command) -> None:
    assert words in sinkbench.refused("size", "kafka", *OF_EACH, *asked.split())
