"""What is read of a namespace: resources as Strimzi, ECK and CloudNativePG write them, and pods of kubernetes/plain."""

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sinkbench.errors import StackError
from sinkbench.settings import Settings
from sinkbench.stack import Allowance
from sinkbench.stack.choice import open_stack
from sinkbench.stack.external import load_stack_file
from sinkbench.stack.kubernetes import allowance, change, lives_of, used_by_pods
from sinkbench.stack.operators import find

Objects = dict[str, list[dict[str, Any]]]
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
PEM = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"


def pod(name: str, ip: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "spec": {}, "status": {"podIP": ip}}


def secret(name: str, **values: str) -> dict[str, Any]:
    data = {key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return {"metadata": {"name": name}, "data": data}


def bench(kind: str, spec: dict[str, Any], **status: Any) -> list[dict[str, Any]]:
    return [{"kind": kind, "metadata": {"name": "bench"}, "spec": spec, "status": status}]


def of_operators() -> Objects:
    kafka = {"strimzi.io/cluster": "bench", "strimzi.io/kind": "Kafka", "strimzi.io/component-type": "kafka"}
    entities = {**kafka, "strimzi.io/component-type": "entity-operator"}
    connect = {"strimzi.io/cluster": "bench", "strimzi.io/kind": "KafkaConnect"}
    scram, bootstrap = {"authentication": {"type": "scram-sha-512"}}, "bench-kafka-bootstrap.ns.svc"
    asked = [{"name": "tls", "port": 9093, "tls": True, **scram}, {"name": "plain", "port": 9092, "tls": False}]
    listeners = [
        {"name": "tls", "bootstrapServers": f"{bootstrap}:9093", "certificates": [PEM]},
        {"name": "plain", "bootstrapServers": f"{bootstrap}:9092"},
    ]
    workers = {"replicas": 2, "metricsConfig": {"type": "jmxPrometheusExporter"}}
    user = {"metadata": {"name": "loader", "labels": {"strimzi.io/cluster": "bench"}}, "spec": scram}
    pooled = {"poolMode": "transaction", "parameters": {"default_pool_size": "10"}}
    search = bench("Elasticsearch", {"version": "9.5.1"}, health="green", phase="Ready")
    return {
        "kafkas.kafka.strimzi.io": bench("Kafka", {"kafka": {"listeners": asked}}, **READY, listeners=listeners),
        "kafkaconnects.kafka.strimzi.io": bench(
            "KafkaConnect", workers, **READY, url="http://bench-connect-api.ns:8083"
        ),
        "kafkausers.kafka.strimzi.io": [user],
        "elasticsearches.elasticsearch.k8s.elastic.co": search,
        "clusters.postgresql.cnpg.io": bench("Cluster", {}, readyInstances=2, writeService="bench-rw"),
        "poolers.postgresql.cnpg.io": [
            {"kind": "Pooler", "metadata": {"name": "bench-pooler"}, "spec": {"pgbouncer": pooled}},
            {"kind": "Pooler", "metadata": {"name": "bench-readers"}, "spec": {"type": "ro", "pgbouncer": {}}},
        ],
        "secrets": [
            secret("loader", password="of-kafka"),  # noqa: S106
            secret("bench-es-elastic-user", elastic="of-search"),
            secret("bench-es-http-certs-public", ca_crt=PEM),
            secret("bench-app", username="app", password="of-sql", dbname="app"),  # noqa: S106
        ],
        "pods": [
            pod("bench-connect-10", "10.0.0.12", **connect),
            pod("bench-connect-2", "10.0.0.11", **connect),
            pod("bench-brokers-0", "10.0.0.1", **kafka),
            pod("bench-brokers-1", "10.0.0.2", **kafka),
            pod("bench-entity-operator-x", "10.0.0.7", **entities),
            pod("bench-es-default-0", "10.0.0.3", **{"elasticsearch.k8s.elastic.co/cluster-name": "bench"}),
            pod("bench-1", "10.0.0.4", **{"cnpg.io/cluster": "bench", "cnpg.io/podRole": "instance"}),
            pod("bench-pooler-x", "10.0.0.5", **{"cnpg.io/poolerName": "bench-pooler"}),
            pod("bench-pooler-y", "10.0.0.6", **{"cnpg.io/poolerName": "bench-pooler"}),
            pod("stranger", "10.0.0.9", app="shop"),
        ],
    }


def of_plain() -> Objects:
    ours = {"app.kubernetes.io/part-of": "sinkbench"}
    services = {"kafka": "10.96.0.1", "elasticsearch": "10.96.0.2", "postgres": "10.96.0.3", "pgbouncer": "10.96.0.4"}
    pods = [("connect-0", "10.0.0.5"), ("connect-1", "10.0.0.6"), ("loadgen-x", "10.0.0.7"), ("kafka-0", "10.0.0.8")]
    return {
        "services": [
            {"metadata": {"name": name, "labels": ours}, "spec": {"clusterIP": ip}}
            for name, ip in {**services, "connect": "None", "loadgen": "None"}.items()
        ],
        "pods": [pod(name, ip, **ours, **{"app.kubernetes.io/component": name.partition("-")[0]}) for name, ip in pods],
        "secrets": [secret("postgres", password="sinkbench")],  # noqa: S106
    }


def found_in(objects: Objects) -> Any:
    def listed(resource: str) -> list[dict[str, Any]]:
        plural, _, name = resource.partition("/")
        return [each for each in objects.get(plural, []) if name in ("", each["metadata"]["name"])]

    return find("ns", listed)


def test_addresses_are_those_of_the_operators_status() -> None:
    found = found_in(of_operators())
    assert found.sections == {
        "kafka": {"bootstrap": "bench-kafka-bootstrap.ns.svc:9092"},
        "connect": {
            "urls": ["http://10.0.0.11:8083", "http://10.0.0.12:8083"],
            "metrics": ["http://10.0.0.11:9404/metrics", "http://10.0.0.12:9404/metrics"],
            "variables": {
                **dict.fromkeys(("POSTGRES_DB", "POSTGRES_USER"), "app"),
                **dict.fromkeys(("POSTGRES_PORT", "PGBOUNCER_PORT"), "5432"),
                "POSTGRES_PASSWORD": {"file": "postgres.password"},
                "POSTGRES_HOST": "bench-rw.ns.svc",
                "POSTGRES_HOSTS": "bench-rw.ns.svc:5432",
                "PGBOUNCER_HOST": "bench-pooler.ns.svc",
                "ELASTICSEARCH_HOSTS": "bench-es-http.ns.svc:9200",
                "ELASTICSEARCH_USER": "elastic",
                "ELASTICSEARCH_PASSWORD": {"file": "elasticsearch.password"},
            },
        },
        "elasticsearch": {
            "url": "https://bench-es-http.ns.svc:9200",
            "user": "elastic",
            "ca": "elasticsearch.pem",
            "password": {"file": "elasticsearch.password"},
        },
        "postgres": {
            "dsn": "host=bench-rw.ns.svc port=5432 dbname=app user=app",
            "password": {"file": "postgres.password"},
        },
        "pgbouncer": {
            "dsn": "host=bench-pooler.ns.svc port=5432 dbname=app user=app",
            "password": {"file": "postgres.password"},
            "metrics": ["http://10.0.0.5:9127/metrics", "http://10.0.0.6:9127/metrics"],
            "settings": {"pool_mode": "transaction", "default_pool_size": "10"},
        },
    }
    assert found.files["postgres.password"] == "of-sql"
    assert found.pods == {
        "kafka-1": "bench-brokers-0",
        "kafka-2": "bench-brokers-1",
        "connect-1": "bench-connect-2",
        "connect-2": "bench-connect-10",
        "elasticsearch": "bench-es-default-0",
        "postgres": "bench-1",
        "pgbouncer-1": "bench-pooler-x",
        "pgbouncer-2": "bench-pooler-y",
    }
    assert found.declares == ""


def test_a_listener_with_tls_and_users_gets_the_certificates_and_a_user_of_kafka() -> None:
    objects = of_operators()
    del objects["kafkas.kafka.strimzi.io"][0]["spec"]["kafka"]["listeners"][1]
    annotations = {"strimzi.io/use-connector-resources": "true"}
    objects["kafkaconnects.kafka.strimzi.io"][0]["metadata"]["annotations"] = annotations
    found = found_in(objects)
    assert found.declares == "bench"
    assert found.sections["kafka"]["settings"] == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "kafka.pem",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "loader",
        "sasl.password": {"file": "kafka.password"},
    }
    assert found.files["kafka.password"] == "of-kafka"


def test_the_pods_of_the_plain_overlay_are_found_by_their_labels() -> None:
    found = found_in(of_plain())
    assert found.sections["kafka"] == {"bootstrap": "10.96.0.1:9092"}
    assert found.sections["connect"]["urls"] == ["http://10.0.0.5:8083", "http://10.0.0.6:8083"]
    assert found.sections["pgbouncer"]["dsn"] == "host=10.96.0.4 port=6432 dbname=pgbouncer user=sinkbench"
    assert found.sections["loadgen"] == {"urls": ["http://10.0.0.7:8090"]}
    assert (found.pods["kafka"], found.pods["loadgen-1"]) == ("kafka-0", "loadgen-x")


def test_what_the_workers_have_in_their_environment_stays_theirs() -> None:
    objects = of_plain()
    given = [{"name": name} for name in ("POSTGRES_HOST", "POSTGRES_PASSWORD", "ELASTICSEARCH_HOSTS")]
    for each in objects["pods"][:2]:
        each["spec"] = {"containers": [{"env": given}]}
    variables = found_in(objects).sections["connect"]["variables"]
    assert not {"POSTGRES_HOST", "POSTGRES_PASSWORD"} & set(variables)
    assert (variables["POSTGRES_PORT"], variables["ELASTICSEARCH_HOSTS"]) == ("5432", "10.96.0.2:9200")


def test_a_cluster_names_the_secret_of_its_database() -> None:
    objects = of_operators()
    objects["clusters.postgresql.cnpg.io"][0]["spec"] = {"bootstrap": {"initdb": {"secret": {"name": "own"}}}}
    objects["secrets"].append(secret("own", username="me", password="mine", dbname="db"))  # noqa: S106
    assert found_in(objects).sections["postgres"]["dsn"].endswith("dbname=db user=me")


@pytest.mark.parametrize("objects", [of_operators(), of_plain()])
def test_what_is_found_is_a_stack_file_without_secrets(objects: Objects, tmp_path: Path) -> None:
    for each in objects["secrets"]:
        each["data"] = {key: value for key, value in each["data"].items() if key != "ca.crt"}
    for each in objects.get("elasticsearches.elasticsearch.k8s.elastic.co", []):
        each["spec"]["http"] = {"tls": {"selfSignedCertificate": {"disabled": True}}}
    found = found_in(objects)
    for name, text in found.files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "stack.yaml").write_text(json.dumps(found.sections))
    assert load_stack_file(tmp_path / "stack.yaml").workers == 2
    assert not any(text in json.dumps(found.sections) for text in ("of-search", "of-sql", "of-kafka"))


def _with(resource: str, **changed: Any) -> Callable[[Objects], None]:
    return lambda objects: objects[resource][0].update(changed)


def _twice(resource: str) -> Callable[[Objects], None]:
    return lambda objects: objects[resource].append({**objects[resource][0], "metadata": {"name": "other"}})


def _without(resource: str) -> Callable[[Objects], None]:
    return lambda objects: objects.pop(resource) and None


def _of_users(*names: str) -> Callable[[Objects], None]:
    def change(objects: Objects) -> None:
        del objects["kafkas.kafka.strimzi.io"][0]["spec"]["kafka"]["listeners"][1]
        (user,) = objects["kafkausers.kafka.strimzi.io"]
        known = [{**user, "metadata": {**user["metadata"], "name": name}} for name in names]
        objects["kafkausers.kafka.strimzi.io"] = known

    return change


NOT_READY = {"conditions": [{"type": "NotReady", "status": "True", "message": "pool has no nodes"}]}
UNREACHED = {"health": "unknown", "conditions": [{"status": "False", "message": "Service s has none"}]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (_twice("kafkas.kafka.strimzi.io"), "has several Kafka (bench, other)"),
        (_twice("poolers.postgresql.cnpg.io"), "has several Pooler (bench-pooler, other)"),
        (_without("kafkas.kafka.strimzi.io"), "has no Kafka of Strimzi"),
        (_without("kafkaconnects.kafka.strimzi.io"), "has no Connect of Strimzi"),
        (_without("secrets"), "Secret bench-es-http-certs-public: has no ca.crt"),
        (_with("kafkas.kafka.strimzi.io", status=NOT_READY), "Kafka bench: is not ready: pool has no nodes"),
        (_with("kafkaconnects.kafka.strimzi.io", status={}), "is not ready: no operator has acted upon it"),
        (lambda objects: objects["pods"].__delitem__(slice(7, 9)), "pgbouncer: none of its pods has an address"),
        (_with("elasticsearches.elasticsearch.k8s.elastic.co", status=UNREACHED), "unknown, Service s has none; wait"),
        (_with("clusters.postgresql.cnpg.io", status={"phase": "Setting up primary"}), "Setting up primary"),
        (_of_users("a", "b"), "there is several (a, b), none of them named sinkbench; create it"),
        (_without("pods"), "connect: none of its pods has an address"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(changed: Callable[[Objects], None], said: str) -> None:
    objects = of_operators()
    changed(objects)
    with pytest.raises(StackError) as caught:
        found_in(objects)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_cpu_time_is_that_of_the_containers() -> None:
    def used(name: str, namespace: str, *nanoseconds: int) -> Mapping[str, Any]:
        containers = [{"cpu": {"usageCoreNanoSeconds": each}, "memory": {"rssBytes": 1000}} for each in nanoseconds]
        return {"podRef": {"name": name, "namespace": namespace}, "containers": containers, "cpu": {"time": "old"}}

    pods = [used("a", "ns", 1_500_000_000, 500_000_000), used("b", "other", 1), used("starting", "ns")]
    assert used_by_pods({"pods": pods}, "ns") == {"a": {"seconds": 2.0, "resident": 2000.0}, "starting": {}}


def _restarted(count: int, **ended: Any) -> dict[str, Any]:
    made = pod("connect-0", "10.0.0.5")
    made["status"]["containerStatuses"] = [{"restartCount": count, "lastState": {"terminated": ended} if ended else {}}]
    return made


def test_a_pod_that_was_started_again_or_is_gone_is_told() -> None:
    before = lives_of(_restarted(0))
    assert change("connect-0", before, _restarted(0)) == ""
    again = _restarted(1, reason="OOMKilled", exitCode=137)
    assert change("connect-0", before, again) == "was started again in pod connect-0 (OOMKilled, exit code 137)"
    anew = {**again, "metadata": {**again["metadata"], "uid": "of another"}}
    for now in (None, anew):
        assert change("connect-0", before, now) == "lost its pod connect-0: it was deleted or evicted"
    # After a fault nothing is known of it.
    assert change("connect-0", None, None) == ""


def _limited(*limits: Mapping[str, str]) -> Mapping[str, Any]:
    return {"spec": {"containers": [{"resources": {"limits": each}} for each in limits]}}


def test_the_limits_of_containers_add_up_unless_one_has_none() -> None:
    two = _limited({"cpu": "500m", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"})
    assert allowance(two) == Allowance(2.5, 2 << 30)
    assert allowance(_limited({"cpu": "2"}, {})) == Allowance(None, None)


@pytest.mark.parametrize("text", [None, b"a: [", b"text", b"- a", b"\xff\xfe", b"clusters: {a: b}\ncurrent-context: c"])
def test_without_a_kubeconfig_one_line_says_what_to_do(
    text: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "config").write_bytes(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with pytest.raises(StackError, match=r"^--stack kubernetes: .*set KUBECONFIG or run in a pod$"):
        open_stack("kubernetes", Settings())


def test_a_cluster_that_does_not_answer_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    clusters = [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}]
    whole = {"clusters": clusters, "contexts": [context], "users": [{"name": "u", "user": {}}], "current-context": "c"}
    config = tmp_path / "config"
    config.write_text(json.dumps(whole))
    monkeypatch.setenv("KUBECONFIG", str(config))
    with pytest.raises(StackError, match=r"its API does not answer: .*refused.*; check KUBECONFIG") as caught:
        open_stack("kubernetes:any", Settings())
    assert "\n" not in str(caught.value)
