"""What a Kubernetes namespace has, as a stack file: clusters of Strimzi, ECK and CloudNativePG, and the pods of
`kubernetes/plain`. Pure: it takes the API's objects as the API writes them, and `List` gets them."""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sinkbench.errors import StackError

Object = Mapping[str, Any]
List = Callable[[str], Sequence[Object]]
"""Returns the objects of a resource, such as `kafkas.kafka.strimzi.io` or `secrets/NAME`; none if there is no such."""

PODS, STRIMZI, SCRAM = "pods", "strimzi.io/cluster", "scram-sha-512"
# The labels by which kubernetes/plain knows the pods of a service.
PART_OF, COMPONENT = "app.kubernetes.io/part-of", "app.kubernetes.io/component"
WORKER = {"urls": "http://{}:8083", "metrics": "http://{}:9404/metrics"}
OWN: Mapping[str, Mapping[str, str]] = {
    "kafka": {"bootstrap": "{}:9092"},
    "elasticsearch": {"url": "http://{}:9200"},
    "postgres": {"dsn": "host={} port=5432 dbname=sinkbench user=sinkbench"},
    "pgbouncer": {"dsn": "host={} port=6432 dbname=pgbouncer user=sinkbench"},
    "connect": WORKER,
    "loadgen": {"urls": "http://{}:8090"},
}
"""Sections of kubernetes/plain and kubernetes/base, by the address of a Service; `urls` and `metrics`, of each pod."""


class NotThere(StackError):
    """There is no such object or resource."""


@dataclass
class Found:
    """A stack file's `sections`, in which {file: NAME} means `files`; the pod of each node in `pods`; the KafkaConnect
    that `declares` its connectors as resources, or ""."""

    list_of: List
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    pods: dict[str, str] = field(default_factory=dict)
    declares: str = ""

    def running(self, labels: Object) -> list[Object]:
        """The pods with these labels that have an address and are not on their way out, by name."""
        mine = [
            each
            for each in labelled(self.list_of(PODS), labels)
            if each.get("status", {}).get("podIP") and "deletionTimestamp" not in each["metadata"]
        ]
        return sorted(mine, key=lambda each: (len(name_of(each)), name_of(each)))

    def add(self, service: str, labels: Object, section: Object, of_each: Object | None = None) -> None:
        """Adds a service by its section, which gets `of_each` for the address of each of its pods, and by these. They
        are numbered as nodes if there are several, or if they have the section's `urls`, as in a stack file."""
        pods = self.running(labels)
        if of_each and not pods:
            raise StackError(f"{service}: none of its pods has an address yet; wait until it runs")
        lists = {key: [text.format(each["status"]["podIP"]) for each in pods] for key, text in (of_each or {}).items()}
        self.sections[service] = {**section, **lists}
        for number, each in enumerate(pods, 1):
            self.pods[f"{service}-{number}" if "urls" in lists or len(pods) > 1 else service] = name_of(each)

    def file(self, name: str, text: str) -> dict[str, str]:
        self.files[name] = text
        return {"file": name}

    def secret(self, name: str, key: str) -> str:
        for each in self.list_of(f"secrets/{name}"):
            if key in each.get("data", {}):
                return base64.b64decode(each["data"][key]).decode()
        raise StackError(
            f"Secret {name}: has no {key} that you may read; wait for the operator, or ask for the right to get it"
        )


def find(namespace: str, list_of: List) -> Found:
    """Raises StackError if a cluster is missing, is there twice, or cannot be used."""
    found = Found(cache(list_of))

    def one(resource: str) -> Object | None:
        # A Pooler that is not of type rw leads to servers that only read.
        there = [each for each in list_of(resource) if each.get("spec", {}).get("type", "rw") == "rw"]
        if len(there) > 1:
            title, names = there[0]["kind"], ", ".join(sorted(name_of(each) for each in there))
            raise StackError(
                f"namespace {namespace}: has several {title} ({names}); use a namespace with one, or a stack file"
            )
        return there[0] if there else None

    _add_own(found)
    if kafka := one("kafkas.kafka.strimzi.io"):
        # Other pods of a Kafka, such as the entity operator's, are of other types.
        labels = {STRIMZI: name_of(kafka), "strimzi.io/component-type": "kafka"}
        found.add("kafka", labels, _kafka(kafka, found))
    if connect := one("kafkaconnects.kafka.strimzi.io"):
        ready(connect)
        if connect["metadata"].get("annotations", {}).get("strimzi.io/use-connector-resources") == "true":
            found.declares = name_of(connect)
        labels = {STRIMZI: name_of(connect), "strimzi.io/kind": "KafkaConnect"}
        asked = WORKER if "metricsConfig" in connect["spec"] else {"urls": WORKER["urls"]}
        found.add("connect", labels, {}, asked)
    if search := one("elasticsearches.elasticsearch.k8s.elastic.co"):
        labels = {"elasticsearch.k8s.elastic.co/cluster-name": name_of(search)}
        found.add("elasticsearch", labels, _elasticsearch(search, namespace, found))
    if cluster := one("clusters.postgresql.cnpg.io"):
        labels = {"cnpg.io/cluster": name_of(cluster), "cnpg.io/podRole": "instance"}
        found.add("postgres", labels, _postgres(cluster, namespace, found))
        if pooler := one("poolers.postgresql.cnpg.io"):
            _add_pooler(pooler, namespace, found)
    if absent := [name.title() for name in ("kafka", "connect") if name not in found.sections]:
        raise StackError(
            f"namespace {namespace}: has no {' and no '.join(absent)} of Strimzi or of kubernetes/plain; create them by"
            " `sinkbench kubernetes apply`, or name another namespace: --stack kubernetes:NAMESPACE"
        )
    found.sections["connect"]["variables"] = _variables(found)
    return found


def name_of(found: Object) -> str:
    return str(found["metadata"]["name"])


def labelled(objects: Iterable[Object], labels: Object) -> list[Object]:
    return [each for each in objects if labels.items() <= each["metadata"].get("labels", {}).items()]


def _add_own(found: Found) -> None:
    """Adds what kubernetes/plain and kubernetes/base describe."""
    ours = {PART_OF: "sinkbench"}
    at = {name_of(each): each["spec"].get("clusterIP") for each in labelled(found.list_of("services"), ours)}
    for name in (each for each in OWN if each in at):
        labels, texts = {**ours, COMPONENT: name}, OWN[name]
        if "urls" not in texts:
            section: dict[str, Any] = {key: text.format(at[name]) for key, text in texts.items()}
            if "dsn" in section:
                section["password"] = found.file("postgres.password", found.secret("postgres", "password"))
            found.add(name, labels, section)
        # Without load generators the controller starts one.
        elif name == "connect" or found.running(labels):
            found.add(name, labels, {}, texts)


def _add_pooler(pooler: Object, namespace: str, found: Found) -> None:
    """Adds a Pooler by its pods' metrics, unless these have TLS by an authority of somebody's. It has the users and
    databases of its Cluster, and a closed console."""
    if pooler["spec"].get("monitoring", {}).get("tls", {}).get("enabled"):
        return
    given, cluster = pooler["spec"]["pgbouncer"], found.sections["postgres"]
    section = {
        **cluster,
        "dsn": f"host={name_of(pooler)}.{namespace}.svc {cluster['dsn'].partition(' ')[2]}",
        "settings": {"pool_mode": given.get("poolMode", "session"), **given.get("parameters", {})},
    }
    found.add("pgbouncer", {"cnpg.io/poolerName": name_of(pooler)}, section, {"metrics": "http://{}:9127/metrics"})


def _variables(found: Found) -> dict[str, Any]:
    """What connector files need of the environment and the workers' containers lack; of Elasticsearch all, since a
    stack file without it means no user."""
    workers = {pod for node, pod in found.pods.items() if node.startswith("connect-")}
    specs = [each["spec"] for each in found.list_of(PODS) if name_of(each) in workers]
    given = {each["name"] for spec in specs for one in spec.get("containers", []) for each in one.get("env", [])}
    dsns = {name: section["dsn"] for name, section in found.sections.items() if "dsn" in section}
    parts = {name: dict(each.split("=") for each in dsn.split()) for name, dsn in dsns.items()}
    known: dict[str, Any] = {f"{name}_{key}".upper(): at[key] for name, at in parts.items() for key in ("host", "port")}
    if at := parts.get("postgres"):
        known |= {"POSTGRES_HOSTS": f"{at['host']}:{at['port']}", "POSTGRES_DB": at["dbname"]}
        known |= {"POSTGRES_USER": at["user"], "POSTGRES_PASSWORD": found.sections["postgres"]["password"]}
    if search := found.sections.get("elasticsearch"):
        known["ELASTICSEARCH_HOSTS"] = search["url"].partition("//")[2]
        known |= {f"ELASTICSEARCH_{key}".upper(): search[key] for key in ("user", "password") if key in search}
    return {name: value for name, value in known.items() if name not in given or name.startswith("ELASTICSEARCH_")}


def ready(found: Object) -> None:
    """Raises StackError, with the operator's words, unless a Strimzi resource is ready."""
    conditions = found.get("status", {}).get("conditions", [])
    if any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
        return
    said = "; ".join(each.get("message") or each.get("reason", each["type"]) for each in conditions)
    raise StackError(f"{found['kind']} {name_of(found)}: is not ready: {said or 'no operator has acted upon it'}")


def _kafka(kafka: Object, found: Found) -> dict[str, Any]:
    """Prefers a listener without TLS and users: what TLS costs is another question."""
    ready(kafka)
    name, status = name_of(kafka), {each["name"]: each for each in kafka["status"].get("listeners", [])}
    offered = [each for each in kafka["spec"]["kafka"]["listeners"] if each["name"] in status]
    usable = [each for each in offered if each.get("authentication", {}).get("type") in (None, SCRAM)]
    if not usable:
        raise StackError(f"Kafka {name}: has no listener without users or with {SCRAM}; give a stack file")
    listener = min(usable, key=lambda each: (each.get("tls", False), "authentication" in each))
    at, protocol = status[listener["name"]], "PLAINTEXT"
    settings: dict[str, Any] = {}
    if listener.get("tls"):
        protocol = "SSL"
        found.file("kafka.pem", "\n".join(at["certificates"]))
        settings["ssl.ca.location"] = "kafka.pem"
    if "authentication" in listener:
        protocol = f"SASL_{protocol}"
        users = labelled(found.list_of("kafkausers.kafka.strimzi.io"), {STRIMZI: name})
        types = {name_of(each): each.get("spec", {}).get("authentication", {}).get("type") for each in users}
        names = [each for each in types if types[each] == SCRAM]
        user = names[0] if len(names) == 1 else "sinkbench"
        if user not in names:
            there = f"several ({', '.join(names)}), none of them" if names else "none"
            raise StackError(f"Kafka {name}: of KafkaUsers with {SCRAM} there is {there} named sinkbench; create it")
        password = found.file("kafka.password", found.secret(user, "password"))
        settings |= {"sasl.mechanism": SCRAM.upper(), "sasl.username": user, "sasl.password": password}
    more = {"settings": {"security.protocol": protocol, **settings}} if settings else {}
    return {"bootstrap": at["bootstrapServers"], **more}


def _elasticsearch(search: Object, namespace: str, found: Found) -> dict[str, Any]:
    name, status = name_of(search), search.get("status", {})
    if (health := status.get("health", "unknown")) not in ("green", "yellow"):
        said = "".join(f", {each['message']}" for each in status.get("conditions", []) if each["status"] == "False")
        raise StackError(f"Elasticsearch {name}: its health is {health}{said}; wait until it is green")
    self_signed = search["spec"].get("http", {}).get("tls", {}).get("selfSignedCertificate", {})
    scheme = "http" if self_signed.get("disabled") else "https"
    section: dict[str, Any] = {"url": f"{scheme}://{name}-es-http.{namespace}.svc:9200", "user": "elastic"}
    if scheme == "https":
        # ECK's own authority, which no machine trusts.
        found.file("elasticsearch.pem", found.secret(f"{name}-es-http-certs-public", "ca.crt"))
        section["ca"] = "elasticsearch.pem"
    section["password"] = found.file("elasticsearch.password", found.secret(f"{name}-es-elastic-user", "elastic"))
    return section


def _postgres(cluster: Object, namespace: str, found: Found) -> dict[str, Any]:
    name, status = name_of(cluster), cluster.get("status", {})
    if not status.get("readyInstances"):
        raise StackError(
            f"Cluster {name}: has no instance that is ready: {status.get('phase', 'no operator has acted upon it')}"
        )
    given = cluster["spec"].get("bootstrap", {}).get("initdb", {}).get("secret", {}).get("name", f"{name}-app")
    user, password, database = (found.secret(given, key) for key in ("username", "password", "dbname"))
    host = f"{status.get('writeService', f'{name}-rw')}.{namespace}.svc"
    dsn = f"host={host} port=5432 dbname={database} user={user}"
    return {"dsn": dsn, "password": found.file("postgres.password", password)}
