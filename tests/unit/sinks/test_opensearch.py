"""What answers like Elasticsearch, and is something else, is refused by its name."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink
from sinkbench.stack import Endpoint
from tests.support.endpoints import endpoints

MAIN = {"name": "n", "version": {"distribution": "opensearch", "number": "2.19.1"}}
NODES = {"nodes": {"AbC": {"version": "2.19.1"}}}


class _Answers(BaseHTTPRequestHandler):
    """Answers as OpenSearch does."""

    def do_GET(self) -> None:
        body = json.dumps(MAIN if self.path == "/" else NODES).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json; charset=UTF-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said: Any) -> None:
        return


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_opensearch_is_no_sink_of_elasticsearchs(address: str) -> None:
    there = endpoints(sinks={"elasticsearch": Endpoint(address, options={"index": "tides"})})
    with pytest.raises(StackError) as refused:
        open_sink("elasticsearch", there, CHECKOUT)
    said = f"elasticsearch at {address}: it is OpenSearch 2.19.1, not Elasticsearch; sinkbench supports Elasticsearch"
    assert str(refused.value) == f"{said} 8.19 and 9; use such a one"
