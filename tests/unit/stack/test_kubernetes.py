"""The driver against an API server that answers from recorded objects, by HTTP; two kubelets do not answer."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sinkbench.stack import Allowance
from sinkbench.stack.kubernetes import KubernetesStack
from tests.support.tlsserver import served
from tests.unit.stack.test_operators import Objects, of_operators, pod

LIMITS = {"name": "main", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}
HANGS, REFUSES = "node-2", "node-3"


@pytest.fixture
def objects() -> Objects:
    """Those of the operators, with a replica, and pods on three nodes."""
    found = of_operators()
    found["elasticsearches.elasticsearch.k8s.elastic.co"][0]["spec"]["http"] = {
        "tls": {"selfSignedCertificate": {"disabled": True}}
    }
    replica = {"cnpg.io/cluster": "bench", "cnpg.io/podRole": "instance", "cnpg.io/instanceRole": "replica"}
    found["pods"].append(pod("bench-0", "10.0.0.8", **replica))
    on = {"bench-1": HANGS, "bench-connect-10": REFUSES}
    for each in found["pods"]:
        name = each["metadata"]["name"]
        each["spec"] = {"nodeName": on.get(name, "node-1"), "hostname": name, "containers": [LIMITS]}
        if "bench-connect" in name:
            each["spec"]["subdomain"] = "bench-connect"
        if name == "bench-1":
            each["metadata"]["labels"]["cnpg.io/instanceRole"] = "primary"
    return found


@pytest.fixture
def stack(objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesStack]:
    groups = {kind.partition(".")[2] for kind in objects if "." in kind}

    async def answer(request: Request) -> Response:
        parts = request.url.path.strip("/").split("/")
        if request.url.path == "/apis":
            preferred = [{"name": each, "preferredVersion": {"groupVersion": f"{each}/v1"}} for each in groups]
            return JSONResponse({"groups": preferred})
        if "proxy" in parts:
            return await summary(parts[3])
        namespaced = parts[parts.index("ns") + 1 :]
        group = parts[1] if parts[0] == "apis" else ""
        items = objects.get(namespaced[0] + (group and f".{group}"), [])
        if len(namespaced) == 1:
            return JSONResponse({"items": items})
        one = [each for each in items if each["metadata"]["name"] == parts[-1]]
        return JSONResponse(one[0] if one else {"message": f"{parts[-1]} not found"}, 200 if one else 404)

    async def summary(node: str) -> Response:
        if node == HANGS:
            await asyncio.sleep(3)
            objects["late"] = []
        if node == REFUSES:
            return JSONResponse({"message": "nodes/proxy is forbidden"}, 403)
        container = {"cpu": {"usageCoreNanoSeconds": 3e9}, "memory": {"rssBytes": 1000}}
        names = [each["metadata"]["name"] for each in objects["pods"] if each["spec"]["nodeName"] == node]
        pods = [{"podRef": {"name": name, "namespace": "ns"}, "containers": [container]} for name in names]
        return JSONResponse({"pods": pods})

    with served(Starlette(routes=[Route("/{path:path}", answer)])) as port:
        context: dict[str, Any] = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        clusters = [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}]
        known = {"clusters": clusters, "contexts": [context], "users": [{"name": "u", "user": {}}]}
        (tmp_path / "config").write_text(json.dumps({**known, "current-context": "c"}))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        yield KubernetesStack("ns")


def test_a_kubelet_that_does_not_answer_holds_nothing_up_and_no_service_is_dead(
    stack: KubernetesStack, objects: Objects
) -> None:
    usage = stack.usage()
    assert "late" not in objects
    assert usage.cpu_seconds["connect-1"] == 3.0
    assert usage.memory_bytes["kafka-2"] == 1000.0
    # postgres-1 is the replica.
    assert not {"postgres-2", "connect-2"} & {*usage.cpu_seconds, *usage.memory_bytes}
    assert usage.troubles == {}


def test_a_pod_that_is_gone_is_dead(stack: KubernetesStack, objects: Objects) -> None:
    objects["pods"] = [each for each in objects["pods"] if each["metadata"]["name"] != "bench-es-default-0"]
    usage = stack.usage()
    assert usage.cpu_seconds["elasticsearch"] is None
    assert usage.troubles == {"elasticsearch": "lost its pod bench-es-default-0: it was deleted or evicted"}


def test_limits_are_those_of_one_node_and_what_a_kubelet_refuses_is_told(stack: KubernetesStack) -> None:
    facts = stack.facts()
    assert facts.allowances["connect"] == facts.allowances["postgres"] == Allowance(2.0, 1 << 30)
    assert facts.cpu_limits.keys() == {"kafka", "connect", "elasticsearch", "postgres", "pgbouncer"}
    assert "Kubernetes: nodes/proxy is forbidden" in facts.unmeasured


def test_workers_are_known_by_their_dns_names_and_a_service_by_its_primary(stack: KubernetesStack) -> None:
    ids = stack.endpoints.worker_ids
    assert ids["bench-connect-10.bench-connect.ns.svc:8083"] == ids["10.0.0.12:8083"] == "connect-2"
    assert stack.log_command("postgres", 5, False)[-1] == "bench-1"
    assert stack.log_command("postgres-1", 5, False)[-1] == "bench-0"
