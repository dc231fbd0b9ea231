"""What a Kubernetes namespace has, as a stack file: clusters of Strimzi, ECK and CloudNativePG, and the pods of
`kubernetes/plain`. Pure: it takes the API's objects as the API writes them, and `Read` gets them."""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sinkbench.errors import StackError

Object = Mapping[str, Any]
List = Callable[[str], Sequence[Object]]
"""Returns the objects of a resource, such as `kafkas.kafka.strimzi.io` or `secrets/NAME`; none if there is no such."""

KAFKAS, CONNECTS, USERS = "kafkas.kafka.strimzi.io", "kafkaconnects.kafka.strimzi.io", "kafkausers.kafka.strimzi.io"
ELASTICSEARCHES, CLUSTERS = "elasticsearches.elasticsearch.k8s.elastic.co", "clusters.postgresql.cnpg.io"
POOLERS = "poolers.postgresql.cnpg.io"
PODS, SERVICES, SECRETS = "pods", "services", "secrets"

# The labels by which kubernetes/plain, and the operators, know the pods of a service.
PART_OF, COMPONENT = "app.kubernetes.io/part-of", "app.kubernetes.io/component"
STRIMZI, STRIMZI_KIND = "strimzi.io/cluster", "strimzi.io/kind"
ECK, CNPG, POOLER = "elasticsearch.k8s.elastic.co/cluster-name", "cnpg.io/cluster", "cnpg.io/poolerName"
USE_RESOURCES = "strimzi.io/use-connector-resources"
REST_PORT, METRICS_PORT, POOLER_METRICS_PORT, LOADGEN_PORT = 8083, 9404, 9127, 8090


class NotThere(StackError):
    """There is no such object or resource."""


@dataclass
class Found:
    """A stack file's `sections`, in which {file: NAME} means `files`; `pods` of each service's node; the
    KafkaConnect that `declares` its connectors as resources, or ""."""

    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    pods: dict[str, list[str]] = field(default_factory=dict)
    declares: str = ""

    def file(self, name: str, text: str) -> dict[str, str]:
        self.files[name] = text
        return {"file": name}


def find(namespace: str, list_of: List) -> Found:
    """Raises StackError if a cluster is missing, is there twice, or cannot be used."""
    found, pods = Found(), list_of(PODS)

    def one(resource: str, title: str) -> Object | None:
        # A Pooler that is not of type rw leads to servers that only read.
        there = [each for each in list_of(resource) if each.get("spec", {}).get("type", "rw") == "rw"]
        if len(there) > 1:
            names = ", ".join(sorted(name_of(each) for each in there))
            raise StackError(
                f"namespace {namespace}: has several {title} ({names}); use a namespace with one, or a stack file"
            )
        return there[0] if there else None

    _add_own(found, pods, list_of)
    if (kafka := one(KAFKAS, "Kafka")) is not None:
        found.sections["kafka"] = _kafka(kafka, found, list_of)
        found.pods["kafka"] = _named(pods, {STRIMZI: name_of(kafka), STRIMZI_KIND: "Kafka"})
    if (connect := one(CONNECTS, "KafkaConnect")) is not None:
        ready(connect)
        if connect["metadata"].get("annotations", {}).get(USE_RESOURCES) == "true":
            found.declares = name_of(connect)
        labels = {STRIMZI: name_of(connect), STRIMZI_KIND: "KafkaConnect"}
        _add_workers(found, pods, labels, "metricsConfig" in connect["spec"])
    if (search := one(ELASTICSEARCHES, "Elasticsearch")) is not None:
        found.sections["elasticsearch"] = _elasticsearch(search, namespace, found, list_of)
        found.pods["elasticsearch"] = _named(pods, {ECK: name_of(search)})
    if (cluster := one(CLUSTERS, "Cluster")) is not None:
        found.sections["postgres"] = _postgres(cluster, namespace, found, list_of)
        found.pods["postgres"] = _named(pods, {CNPG: name_of(cluster), "cnpg.io/podRole": "instance"})
        if (pooler := one(POOLERS, "Pooler")) is not None:
            _add_pooler(pooler, f"{name_of(pooler)}.{namespace}.svc", found, pods)
    if absent := [title for name, title in (("kafka", "Kafka"), ("connect", "Connect")) if name not in found.sections]:
        raise StackError(
            f"namespace {namespace}: has no {' and no '.join(absent)} of Strimzi or of kubernetes/plain; create them by"
            " `sinkbench kubernetes apply`, or name another namespace: --stack kubernetes:NAMESPACE"
        )
    return found


def name_of(found: Object) -> str:
    return str(found["metadata"]["name"])


def _add_own(found: Found, pods: Sequence[Object], list_of: List) -> None:
    """Adds what kubernetes/plain and kubernetes/base describe."""

    def ours(objects: Sequence[Object]) -> list[Object]:
        return [each for each in objects if each["metadata"].get("labels", {}).get(PART_OF) == "sinkbench"]

    own, at = ours(pods), {name_of(each): each["spec"].get("clusterIP") for each in ours(list_of(SERVICES))}
    if "kafka" in at:
        found.sections["kafka"] = {"bootstrap": f"{at['kafka']}:9092"}
    if "elasticsearch" in at:
        found.sections["elasticsearch"] = {"url": f"http://{at['elasticsearch']}:9200"}
    for name, port, database in (("postgres", 5432, "sinkbench"), ("pgbouncer", 6432, "pgbouncer")):
        if name in at:
            password = found.file("postgres.password", _secret("postgres", "password", list_of))
            dsn = f"host={at[name]} port={port} dbname={database} user=sinkbench"
            found.sections[name] = {"dsn": dsn, "password": password}
    for name in at.keys() & {"kafka", "elasticsearch", "postgres", "pgbouncer"}:
        found.pods[name] = _named(own, {COMPONENT: name})
    if "connect" in at:
        _add_workers(found, own, {COMPONENT: "connect"}, has_metrics=True)
    if loadgens := _with(own, {COMPONENT: "loadgen"}):
        found.sections["loadgen"] = {"urls": [f"http://{each['status']['podIP']}:{LOADGEN_PORT}" for each in loadgens]}
        found.pods |= {f"loadgen-{number}": [name_of(each)] for number, each in enumerate(loadgens, 1)}


def _add_pooler(pooler: Object, host: str, found: Found, pods: Sequence[Object]) -> None:
    """Adds a Pooler by its pods' metrics, unless these have TLS by an authority of somebody's. It has the users and
    databases of its Cluster, and a closed console."""
    if pooler["spec"].get("monitoring", {}).get("tls", {}).get("enabled"):
        return
    given, running = pooler["spec"]["pgbouncer"], _running(pods, {POOLER: name_of(pooler)}, "Pooler")
    found.sections["pgbouncer"] = {
        **found.sections["postgres"],
        "dsn": f"host={host} {found.sections['postgres']['dsn'].partition(' ')[2]}",
        "metrics": [f"http://{each['status']['podIP']}:{POOLER_METRICS_PORT}/metrics" for each in running],
        "settings": {"pool_mode": given.get("poolMode", "session"), **given.get("parameters", {})},
    }
    found.pods["pgbouncer"] = [name_of(each) for each in running]


def _running(pods: Sequence[Object], labels: Mapping[str, str], title: str) -> list[Object]:
    if not (found := _with(pods, labels)):
        raise StackError(f"{title}: none of its pods has an address yet; wait until it runs")
    return found


def _add_workers(found: Found, pods: Sequence[Object], labels: Mapping[str, str], has_metrics: bool) -> None:
    workers = _running(pods, labels, "Connect")
    at = [each["status"]["podIP"] for each in workers]
    found.sections["connect"] = {"urls": [f"http://{ip}:{REST_PORT}" for ip in at]}
    if has_metrics:
        found.sections["connect"]["metrics"] = [f"http://{ip}:{METRICS_PORT}/metrics" for ip in at]
    found.pods |= {f"connect-{number}": [name_of(each)] for number, each in enumerate(workers, 1)}


def _with(pods: Sequence[Object], labels: Mapping[str, str]) -> list[Object]:
    """The pods with these labels that have an address and are not on their way out, by name."""
    mine = [
        each
        for each in pods
        if labels.items() <= each["metadata"].get("labels", {}).items()
        and each.get("status", {}).get("podIP")
        and "deletionTimestamp" not in each["metadata"]
    ]
    return sorted(mine, key=lambda each: (len(name_of(each)), name_of(each)))


def _named(pods: Sequence[Object], labels: Mapping[str, str]) -> list[str]:
    return [name_of(each) for each in _with(pods, labels)]


def ready(found: Object) -> None:
    """Raises StackError, with the operator's words, unless a Strimzi resource is ready."""
    conditions = found.get("status", {}).get("conditions", [])
    if any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
        return
    said = "; ".join(each.get("message") or each.get("reason", each["type"]) for each in conditions)
    raise StackError(f"{found['kind']} {name_of(found)}: is not ready: {said or 'no operator has acted upon it'}")


def _secret(name: str, key: str, list_of: List) -> str:
    for each in list_of(f"{SECRETS}/{name}"):
        if key in each.get("data", {}):
            return base64.b64decode(each["data"][key]).decode()
    raise StackError(
        f"Secret {name}: has no {key} that you may read; wait for the operator, or ask for the right to get it"
    )


def _kafka(kafka: Object, found: Found, list_of: List) -> dict[str, Any]:
    """Prefers a listener without TLS and users: what TLS costs is another question."""
    ready(kafka)
    name, status = name_of(kafka), {each["name"]: each for each in kafka["status"].get("listeners", [])}
    offered = [each for each in kafka["spec"]["kafka"]["listeners"] if each["name"] in status]
    kinds = (None, "scram-sha-512")
    usable = [each for each in offered if each.get("authentication", {}).get("type") in kinds]
    if not usable:
        raise StackError(f"Kafka {name}: has no listener without users or with scram-sha-512; give a stack file")
    listener = min(usable, key=lambda each: (each.get("tls", False), "authentication" in each))
    at = status[listener["name"]]
    settings: dict[str, Any] = {}
    if listener.get("tls"):
        found.file("kafka.pem", "\n".join(at["certificates"]))
        settings["ssl.ca.location"] = "kafka.pem"
    if "authentication" in listener:
        mine = (each for each in list_of(USERS) if each["metadata"].get("labels", {}).get(STRIMZI) == name)
        kind = {name_of(each): each.get("spec", {}).get("authentication", {}).get("type") for each in mine}
        user = next((each for each in kind if kind[each] == "scram-sha-512"), None)
        if user is None:
            raise StackError(f"Kafka {name}: has no KafkaUser with scram-sha-512 for sinkbench; create one")
        password = found.file("kafka.password", _secret(user, "password", list_of))
        settings |= {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": user, "sasl.password": password}
    if settings:
        layers = ("SASL" if "authentication" in listener else "", "SSL" if listener.get("tls") else "PLAINTEXT")
        settings["security.protocol"] = "_".join(filter(None, layers))
    return {"bootstrap": at["bootstrapServers"], **({"settings": settings} if settings else {})}


def _elasticsearch(search: Object, namespace: str, found: Found, list_of: List) -> dict[str, Any]:
    name, status = name_of(search), search.get("status", {})
    if (health := status.get("health", "unknown")) not in ("green", "yellow"):
        said = "".join(f", {each['message']}" for each in status.get("conditions", []) if each["status"] == "False")
        raise StackError(f"Elasticsearch {name}: its health is {health}{said}; wait until it is green")
    self_signed = search["spec"].get("http", {}).get("tls", {}).get("selfSignedCertificate", {})
    scheme = "http" if self_signed.get("disabled") else "https"
    section: dict[str, Any] = {"url": f"{scheme}://{name}-es-http.{namespace}.svc:9200", "user": "elastic"}
    if scheme == "https":
        # ECK's own authority, which no machine trusts.
        found.file("elasticsearch.pem", _secret(f"{name}-es-http-certs-public", "ca.crt", list_of))
        section["ca"] = "elasticsearch.pem"
    section["password"] = found.file("elasticsearch.password", _secret(f"{name}-es-elastic-user", "elastic", list_of))
    return section


def _postgres(cluster: Object, namespace: str, found: Found, list_of: List) -> dict[str, Any]:
    name, status = name_of(cluster), cluster.get("status", {})
    if not status.get("readyInstances"):
        raise StackError(
            f"Cluster {name}: has no instance that is ready: {status.get('phase', 'no operator has acted upon it')}"
        )
    user, password, database = (_secret(f"{name}-app", key, list_of) for key in ("username", "password", "dbname"))
    host = f"{status.get('writeService', f'{name}-rw')}.{namespace}.svc"
    dsn = f"host={host} port=5432 dbname={database} user={user}"
    return {"dsn": dsn, "password": found.file("postgres.password", password)}
