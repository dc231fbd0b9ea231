"""What a fault of the network is to the proxy, and which of a sink's addresses the proxy takes."""

from hypothesis import given
from hypothesis import strategies as st

from sinkbench.plan.entries import read_connector
from sinkbench.plan.faults import PlanFault
from sinkbench.settings import CHECKOUT
from sinkbench.stack import ProxyTarget
from sinkbench.stack.assembly import specs
from sinkbench.trial.workload import proxy_targets_used, toxics_of

ENTRANCES = {name: ProxyTarget("127.0.0.1", 1, each.variables) for name, each in specs().items() if each.variables}


def fault(**keys: object) -> PlanFault:
    return PlanFault.model_validate(keys)


def used_by(pipeline: str) -> list[str]:
    sink = pipeline.partition("/")[0]
    return list(proxy_targets_used(read_connector(CHECKOUT / "connectors" / f"{pipeline}.json"), sink, ENTRANCES))


@given(halves=st.integers(0, 20_000))
def test_a_delay_is_twice_as_long_for_a_round_trip_and_as_even_as_whole_milliseconds_allow(halves: int) -> None:
    toxics = toxics_of(fault(what="delay", milliseconds=halves / 2))
    found = {each.stream: each.attributes["latency"] for each in toxics}
    up, down = found.get("upstream", 0), found.get("downstream", 0)
    assert up + down == halves
    assert 0 <= up - down <= 1
    assert 0 not in found.values()
    assert len({each.name for each in toxics}) == len(toxics)


def test_other_faults_of_the_network_in_toxiproxys_words() -> None:
    # Without a toxic the proxy refuses connections.
    assert toxics_of(fault(what="cut")) == []
    assert [(each.type, each.stream, each.attributes) for each in toxics_of(fault(what="cut", how="drop"))] == [
        ("timeout", "upstream", {"timeout": 0}),
        ("timeout", "downstream", {"timeout": 0}),
    ]
    throttled = toxics_of(fault(what="throttle", bytes_per_second=250_000))
    assert [(each.name, each.attributes) for each in throttled] == [
        ("bandwidth_upstream", {"rate": 250}),
        ("bandwidth_downstream", {"rate": 250}),
    ]


def test_the_proxy_stands_before_what_a_connector_connects_to() -> None:
    assert (used_by("postgres/jdbc"), used_by("postgres/jdbc-pgbouncer")) == (["postgres"], ["pgbouncer"])
    assert (used_by("postgres/camel-sql"), used_by("elasticsearch/camel-bulk")) == (["postgres"], ["elasticsearch"])
    elsewhere = {"connection.url": "jdbc:postgresql://db:5432/x", "tasks.max": 3}
    assert proxy_targets_used(elsewhere, "postgres", ENTRANCES) == {}


def test_every_connector_file_leaves_the_address_of_its_sink_to_the_workers() -> None:
    files = sorted((CHECKOUT / "connectors").glob("*/*.json"))
    assert [str(file) for file in files if not used_by(f"{file.parent.name}/{file.stem}")] == []
