"""The manifests against a real API server: it takes all overlays, and refuses mistakes. Nothing is kept there."""

import copy
import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from sinkbench.cli.main import main
from sinkbench.errors import EXIT_UNUSABLE, ConnectError
from sinkbench.stack import connectors
from sinkbench.stack.kubernetes import Api
from tests.kubernetes.cluster import ROOT, done, kubectl

OVERLAYS, COMPONENT = ("small", "published", "large"), "components/podmonitor"
OPERATORS = "kubernetes/operators/kustomization.yaml"
DRY_RUN = ("apply", "--server-side", "--dry-run=server", "--validate=strict")
ABSENT = object()
"""In place of a value: the field is removed."""

SIZED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("KafkaNodePool", "KafkaConnect", "Cluster"), lambda spec: spec),
    **dict.fromkeys(("Deployment", "Job", "Pooler"), lambda spec: spec["template"]["spec"]["containers"][0]),
    "Elasticsearch": lambda spec: spec["nodeSets"][0]["podTemplate"]["spec"]["containers"][0],
}
MISTAKES = [
    # kind and name, path of the field, its wrong value, what the server says
    ("KafkaConnect/bench", "/spec/replica", 3, ".spec.replica: field not declared in schema"),
    ("KafkaConnect/bench", "/spec/externalConfiguration", {"env": []}, "field not declared in schema"),
    ("KafkaConnect/bench", "/spec/groupId", ABSENT, "spec.groupId: Required value"),
    ("KafkaConnect/bench", "/spec/resources/limits/memory", "1536MB", "spec.resources.limits.memory"),
    ("KafkaConnect/bench", "/spec/jvmOptions/-Xmx", "512Mi", "spec.jvmOptions.-Xmx"),
    ("Kafka/bench", "/spec/kafka/listeners/0/tls", "no", ".spec.kafka.listeners[0].tls: expected boolean"),
    ("Kafka/bench", "/apiVersion", "kafka.strimzi.io/v1beta2", "no matches for kind"),
    ("KafkaNodePool/broker", "/spec/roles/0", "brokers", "Unsupported value"),
    ("Elasticsearch/bench", "/spec/nodeSets/0/count", "three", ".spec.nodeSets[0].count: expected numeric"),
    ("Elasticsearch/bench", "/spec/version", ABSENT, "spec.version: Required value"),
    ("Elasticsearch/bench", "/apiVersion", "elasticsearch.k8s.elastic.co/v1alpha1", "no matches for kind"),
    ("Cluster/bench", "/spec/instances", 0, "greater than or equal to 1"),
    ("Cluster/bench", "/spec/postgresql/synchronous/number", 0, "should be greater than zero"),
    ("Cluster/bench", "/spec/postgresql/parameters/max_connections", 100, ".max_connections: expected string"),
    ("Pooler/bench-pooler", "/spec/pgbouncer/poolMode", "statement", "Unsupported value"),
    ("PodMonitor/connect", "/spec/podMetricsEndpoints/0/interval", "15 s", "spec.podMetricsEndpoints[0].interval"),
    ("Deployment/loadgen", "/spec/template/spec/containers/0/resources/limits/memory", "1GB", "quantities must match"),
    ("Job/controller", "/spec/template/spec/restartPolicy", "Always", "restartPolicy: Required value"),
]


def rendered(overlay: str) -> dict[str, Any]:
    """The objects of an overlay, or of the folder at an absolute path, by kind and name."""
    text = done("kustomize", str(ROOT / "kubernetes/overlays" / overlay))
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in YAML(typ="safe").load_all(text)}


def changed(document: Any, path: str, value: object) -> Any:
    """A copy of the document with another value at a JSON pointer."""
    copied = copy.deepcopy(document)
    *parents, last = (int(part) if part.isdigit() else part for part in path.removeprefix("/").split("/"))
    inside = copied
    for part in parents:
        inside = inside[part]
    if value is ABSENT:
        del inside[last]
    else:
        inside[last] = value
    return copied


@pytest.fixture(scope="module")
def monitored(operators: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    return monitored_overlay(tmp_path_factory.mktemp("monitored"), "overlays/published")


def monitored_overlay(folder: Path, overlay: str) -> str:
    """The path of an overlay with the component for the Prometheus operator."""
    paths = (os.path.relpath(ROOT / "kubernetes" / each, folder.resolve()) for each in (overlay, COMPONENT))
    parts = {name: [path] for name, path in zip(("resources", "components"), paths, strict=True)}
    (folder / "kustomization.yaml").write_text(json.dumps(parts))
    return str(folder)


@pytest.fixture(scope="module")
def published(monitored: str) -> dict[str, Any]:
    return rendered(monitored)


@pytest.mark.parametrize("overlay", [*OVERLAYS, ""])
def test_an_api_server_takes_every_object_of_an_overlay_without_a_warning(monitored: str, overlay: str) -> None:
    answer = kubectl(*DRY_RUN, f"--kustomize={ROOT / 'kubernetes/overlays' / (overlay or monitored)}")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert len(answer.stdout.splitlines()) == len(rendered(overlay or monitored))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_everything_that_runs_has_requests_and_limits(operators: None, overlay: str) -> None:
    kinds = set()
    for name, each in rendered(overlay).items():
        kinds.add(kind := name.partition("/")[0])
        if kind in SIZED:
            sizes = SIZED[kind](each["spec"])["resources"]
            assert set(sizes["requests"]) == set(sizes["limits"]) == {"cpu", "memory"}, name
    assert set(SIZED) <= kinds


def test_the_template_of_elasticsearch_makes_a_restricted_pod(published: dict[str, Any]) -> None:
    # ECK's definition takes anything for a template.
    template = published["Elasticsearch/bench"]["spec"]["nodeSets"][0]["podTemplate"]
    named = {"metadata": {"name": "tried", "namespace": "sinkbench"}}
    pod = changed({"apiVersion": "v1", "kind": "Pod", **template, **named}, "/spec/containers/0/image", "none")
    answer = kubectl(*DRY_RUN, "--filename=-", given=pod)
    assert (answer.returncode, answer.stderr) == (0, "")
    wrong = changed(pod, "/spec/securityContext/runAsNonRoot", ABSENT)
    assert "violates PodSecurity" in kubectl(*DRY_RUN, "--filename=-", given=wrong).stderr


@pytest.mark.parametrize(("name", "path", "value", "said"), MISTAKES)
def test_an_api_server_refuses(published: dict[str, Any], name: str, path: str, value: object, said: str) -> None:
    answer = kubectl(*DRY_RUN, "--filename=-", given=changed(published[name], path, value))
    assert answer.returncode != 0
    assert said in answer.stderr


def test_connectors_are_resources_that_the_server_takes(operators: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No operator acts on them: its answers are written in its place."""
    monkeypatch.setattr(connectors, "OPERATOR_SECONDS", 0.0)
    api, name = Api("sinkbench"), "tides-ab12cd-001"
    change, of = connectors.KafkaConnectors(api, "bench"), (connectors.CONNECTORS, name, "--namespace=sinkbench")
    topics = {"topics": "tides_ab12cd_001"}
    config, where = {"connector.class": "a.Sink", "tasks.max": "3", **topics}, f"/connectors/{name}"
    late = ("pause", None), ("restart?includeTasks=true", None), ("config", {**config, "tasks.max": "6"})
    try:
        with pytest.raises(ConnectError, match="no operator has acted upon it"):
            change("POST", "/connectors", {"name": name, "config": config})
        assert change.names() == [name]
        for kind in ("NotReady", "Ready"):
            status = {"observedGeneration": 1, "conditions": [{"type": kind, "status": "True", "message": "no class"}]}
            done("patch", *of, "--subresource=status", "--type=merge", f"--patch={json.dumps({'status': status})}")
            with nullcontext() if kind == "Ready" else pytest.raises(ConnectError, match=f"{name}: .*: no class"):
                assert change("PUT", f"{where}/config", config)
        for what, body in late:
            with pytest.raises(ConnectError, match="no operator has acted upon it"):
                change("PUT" if what in ("pause", "config") else "POST", f"{where}/{what}", body)
        found = api.call(api.path(f"{connectors.CONNECTORS}/{name}"))
        assert found["spec"] == {"class": "a.Sink", "tasksMax": 6, "state": "running", "config": topics}
        assert found["metadata"]["annotations"] == {connectors.RESTART: "includeTasks"}
        with pytest.raises(ConnectError, match=r"spec.tasksMax: Invalid value: 0"):
            change("PUT", f"{where}/config", {**config, "tasks.max": "0"})
        assert change("DELETE", where, None)
        assert not change("DELETE", where, None)
    finally:
        kubectl("delete", *of, "--ignore-not-found")


def test_what_no_operator_makes_ready_is_told_with_its_words(
    operators: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cluster.yaml").write_text(json.dumps(rendered("small")["Cluster/bench"]))
    (tmp_path / "kustomization.yaml").write_text("resources: [cluster.yaml]")
    where = ("--namespace", "sinkbench-unready")
    apply = ["kubernetes", "apply", "--overlay", str(tmp_path), *where, "--wait", "3"]
    try:
        assert main(apply) == EXIT_UNUSABLE
        assert capsys.readouterr().err.endswith(": no operator has acted upon it\n")
        status = json.dumps({"status": {"phase": "Setting up primary"}})
        done("patch", "cluster.postgresql.cnpg.io/bench", *where, "--subresource=status", "--type=merge", "-p", status)
        assert main(apply) == EXIT_UNUSABLE
        assert capsys.readouterr().err.endswith(": Setting up primary\n")
    finally:
        kubectl("delete", "namespace", where[1], "--ignore-not-found")


def labels_of_pods(each: Any) -> Any:
    """Those that a controller or an operator gives an object's pods; None if it has none."""
    spec = each.get("spec", {})
    template = spec.get("template") or spec.get("nodeSets", [{}])[0].get("podTemplate") or {}
    return (spec.get("inheritedMetadata") or template.get("pod", template).get("metadata") or {}).get("labels")


@pytest.mark.parametrize("overlay", ["plain", "overlays/large"])
def test_policies_and_monitors_select_all_pods_of_ours_and_no_other(tmp_path: Path, overlay: str) -> None:
    objects = rendered(monitored_overlay(tmp_path, overlay))
    pods = {name: labels for name, each in objects.items() if (labels := labels_of_pods(each))}
    admitted: set[str] = set()
    for name, spec in (
        (name, each["spec"]) for name, each in objects.items() if "Policy/" in name or "Monitor/" in name
    ):
        selector = spec.get("podSelector") or spec["selector"]
        keys = {each["key"] for each in selector.get("matchExpressions", [])}
        asked = selector.get("matchLabels", {}).items()
        # Pods of others have components, too.
        assert {"sinkbench", "app.kubernetes.io/part-of"} & {*keys, *selector.get("matchLabels", {})}, name
        found = {pod for pod, has in pods.items() if asked <= has.items() and keys <= has.keys()}
        assert found, name
        if {"podSelector": {}} in spec.get("ingress", [{}])[0].get("from", []):
            admitted |= found
    assert admitted == pods.keys()


def test_kustomizes_images_are_those_of_operators_too(published: dict[str, Any]) -> None:
    tags = {each["name"]: each["newTag"] for each in YAML(typ="safe").load(ROOT / OPERATORS)["images"]}
    image = "sinkbench/connect"
    assert published["KafkaConnect/bench"]["spec"]["image"] == f"{image}:{tags[image]}"
