"""Which nodes a client of Elasticsearch asks."""

from __future__ import annotations

from contextlib import closing

from sinkbench.sinks.elasticsearch.client import connect
from sinkbench.stack import Endpoint

FIRST, SECOND = "http://127.0.0.1:19200", "http://127.0.0.1:19201"


def asked(endpoint: Endpoint) -> set[str]:
    with closing(connect(endpoint)) as client:
        return {node.base_url for node in client.transport.node_pool.all()}


def test_the_only_node_is_asked_at_its_address() -> None:
    assert asked(Endpoint(FIRST)) == {FIRST}


def test_each_of_several_nodes_can_be_asked_for_one_may_be_gone() -> None:
    nodes = {"elasticsearch": Endpoint(FIRST), "elasticsearch-2": Endpoint(SECOND)}
    assert asked(Endpoint(FIRST, nodes=nodes)) == {FIRST, SECOND}
