"""A server that answers like Elasticsearch, and is another product, is refused by its name."""

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink
from sinkbench.stack import Endpoint
from tests.support.endpoints import endpoints
from tests.support.tlsserver import served

ANSWERS = {
    "/": {"name": "n", "version": {"distribution": "opensearch", "number": "2.19.1"}},
    "/_nodes/_local": {"nodes": {"AbC": {"version": "2.19.1"}}},
}
OPENSEARCH = Starlette(routes=[Route(path, lambda asked: JSONResponse(ANSWERS[asked.url.path])) for path in ANSWERS])


def test_opensearch_is_no_sink_of_elasticsearchs() -> None:
    with served(OPENSEARCH) as port:
        there = endpoints(sinks={"elasticsearch": Endpoint(f"http://127.0.0.1:{port}", options={"index": "tides"})})
        with pytest.raises(StackError) as refused:
            open_sink("elasticsearch", there, CHECKOUT)
    said = str(refused.value)
    assert said.startswith(f"elasticsearch at http://127.0.0.1:{port}: its answers bear no x-elastic-product: it is")
    assert said.endswith("sinkbench supports Elasticsearch 8.19 and 9; use such a one")
