"""Elasticsearch as a service: its section of a stack file, readiness, and version."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import httpx
from pydantic import Field, model_validator

from sinkbench.services.http import http_client, http_errors
from sinkbench.services.versions import Supported
from sinkbench.stack import Endpoint
from sinkbench.stack.assembly import get, said
from sinkbench.stack.registry import About, Place, SinkService
from sinkbench.stack.sections import HttpSection, Secret, SinkSection, Url
from sinkbench.topology import SHIPPED
from sinkbench.yamlfile import mistake

# The alias that connector files write to on sinkbench's own stacks.
INDEX = "tides"
TIMEOUT_SECONDS = 10.0
# All answers since Elasticsearch 7.14 have it, and the client accepts no others.
PRODUCT_HEADER = "x-elastic-product"
ABOUT = {"filter_path": "nodes.*.version,nodes.*.jvm.version,nodes.*.jvm.input_arguments"}


class ElasticsearchSection(HttpSection, SinkSection):
    """The cluster that the connectors write to."""

    address_key: ClassVar[str] = "url"

    url: Url
    index: str = Field(
        default=INDEX, pattern=r"^[a-z0-9][a-z0-9._-]*$", description="the alias that connectors write to"
    )
    api_key: Secret | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if self.api_key is not None and self.user is not None:
            raise mistake("{name} has both 'user' and 'api_key'; give one of them", "api_key")
        return self

    def endpoint(self) -> Endpoint:
        return Endpoint(self.url, access=replace(self.access, api_key=self.api_key), options={"index": self.index})

    def variables(self) -> Mapping[str, str]:
        # Workers have a login of their own, if any.
        none = ("ELASTICSEARCH_CA", "ELASTICSEARCH_PASSWORD", "ELASTICSEARCH_USER")
        return {"ELASTICSEARCH_INDEX": self.index, **dict.fromkeys(none, "")}


def ready(endpoint: Endpoint, shared: bool, timeout_seconds: float) -> str | None:
    answer = get(endpoint, "_cluster/health", timeout_seconds)
    if isinstance(answer, str):
        # A user without the right to read the cluster's health is authenticated all the same.
        return None if answer.startswith("HTTP 403") else answer
    try:
        health = answer.json()
        status, nodes = health["status"], int(health["number_of_nodes"])
    except (ValueError, KeyError, TypeError):
        return f"it is no Elasticsearch: {said(answer, 100)}"
    # A node of sinkbench's own must have found the others.
    if nodes < int(endpoint.options.get("nodes", nodes)):
        return f"its cluster has {nodes} of {endpoint.options['nodes']} nodes"
    return None if status in ("green", "yellow") else f"its state is {status}"


def about(endpoint: Endpoint) -> About:
    """What one node says about itself; empty if it does not show that."""
    with http_client(endpoint.access, TIMEOUT_SECONDS) as http, http_errors():
        answer = http.get(f"{endpoint.address}/_nodes/_local", params=ABOUT)
    if answer.status_code != httpx.codes.OK:
        return About()
    if PRODUCT_HEADER not in answer.headers:
        other = "it is OpenSearch, another product, or an Elasticsearch before 7.14"
        return About(other=f"its answers bear no {PRODUCT_HEADER}: {other}")
    return about_of(next(iter(answer.json().get("nodes", {}).values()), {}))


def about_of(node: Mapping[str, Any]) -> About:
    """What a node says about itself in an answer of `_nodes`."""
    java = node.get("jvm", {})
    return About(node.get("version"), java.get("version"), java.get("input_arguments"))


def _endpoint(place: Place) -> Endpoint:
    nodes, access = place.layout.of("elasticsearch"), place.access("elasticsearch")
    options = {"index": INDEX}
    # In the small topology elasticsearch/index.json, which you may have changed, says it.
    if place.layout.name != SHIPPED[0]:
        options |= {name: str(getattr(place.layout.elasticsearch, name)) for name in ("shards", "replicas")}
    together = {**options, "nodes": str(len({node.name for node in nodes} - place.gone))}
    at = {node.name: place.url(place.address(node, "elasticsearch_port")) for node in nodes}
    found = {name: Endpoint(address, access=access, options=together) for name, address in at.items()}
    return replace(found[nodes[0].name], options=options, nodes=found if len(found) > 1 else {})


def _shared(place: Place) -> Mapping[str, str]:
    """Elasticsearch's variables for all services; see `elasticsearch/run`."""
    hosts = place.hosts("elasticsearch_port")
    several = len(hosts) > 1
    return {
        "ELASTICSEARCH_INDEX": INDEX,
        "ELASTICSEARCH_HOSTS": ",".join(hosts),
        # For connectors that need full URLs.
        "ELASTICSEARCH_URLS": ",".join(f"{place.scheme}://{host}" for host in hosts),
        "ELASTICSEARCH_SEEDS": ",".join(place.hosts("elasticsearch_transport_port")) if several else "",
        "ELASTICSEARCH_MASTERS": ",".join(place.layout.elasticsearch.nodes) if several else "",
    }


SERVICE = SinkService(
    name="elasticsearch",
    title="Elasticsearch",
    section=ElasticsearchSection,
    ready=ready,
    about=about,
    in_java=True,
    supported=Supported("8.19 and 9", (8, 19), (10,)),
    ports=("elasticsearch_port", "elasticsearch_transport_port"),
    script="elasticsearch/run",
    shared=_shared,
    own=lambda place, node: {"ELASTICSEARCH_NODE": node.name},
    endpoint=_endpoint,
    variables={"ELASTICSEARCH_HOSTS": "{host}:{port}"},
)
