"""Topologies: the nodes of each service, and what they replicate (docs/topologies.md). A service's first node has the
service's name ("kafka"), others a longer one ("kafka-2"); workers are numbered from 1 ("connect-1")."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, JsonValue, PrivateAttr, model_validator

from sinkbench.errors import SettingsError, StackError
from sinkbench.suggest import nearest
from sinkbench.yamlfile import Section, YamlFile, mistake, shown

SERVICES = ("kafka", "elasticsearch", "postgres", "pgbouncer", "connect")
"""The services of a stack that sinkbench starts, in starting order."""
SHIPPED = ("small", "published", "brokers", "five-brokers")
"""Names that stand for a file in the folder `topologies` of the checkout."""
PORT_STEPS: Mapping[str, int] = {"kafka": 2, "elasticsearch": 1, "postgres": 1, "pgbouncer": 1, "connect": 1}
"""The distance between the ports of a service's consecutive nodes. Kafka has two adjacent ports per node."""
MOST_WORKERS = 16
# Measured: a JVM takes at most 1.4 times its heap with heaps from 768 MB, PostgreSQL and PgBouncer 0.4 GB. The rest is
# for the controller, its load generator, and smaller heaps, whose fixed part is as large.
BESIDE_HEAP, OTHERS_BYTES = 1.5, 1_000_000_000
"""Memory of a JVM per byte of its heap, and bytes of all other processes."""
_UNITS = {"m": 1 << 20, "g": 1 << 30}
_HEAP = re.compile(r"[1-9][0-9]*[mg]")
_FILE = (".yaml", ".yml")


@dataclass(frozen=True)
class Node:
    """One process or container; `number` counts the service's nodes from 1."""

    name: str
    service: str
    number: int


# Cached: a live view calls this for all names several times a second.
@cache
def service_of(name: str) -> str:
    """Returns the service of a node: `connect` of `connect-2`, `kafka` of `kafka-east`."""
    for service in SERVICES:
        if name == service or name.startswith(f"{service}-"):
            return service
    return re.sub(r"-\d+$", "", name)


def _heap(value: object) -> object:
    if value is not None and not (isinstance(value, str) and _HEAP.fullmatch(value)):
        raise mistake(f"{{name}} must be such as 768m or 2g, found {shown(value)}")
    return value


def _nodes(service: str, most: int) -> BeforeValidator:
    """Expands a number of nodes to names."""

    def named(value: object) -> tuple[str, ...]:
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise mistake(f"{{name}} must be a whole number from 1 to {most}, found {shown(value)}")
        return (service, *(f"{service}-{number}" for number in range(2, value + 1)))

    return BeforeValidator(named)


Heap = Annotated[str | None, BeforeValidator(_heap)]
Names = Annotated[tuple[str, ...], Field(strict=False)]


class KafkaNodes(Section):
    """The brokers, each of which is also a controller."""

    nodes: Annotated[Names, _nodes("kafka", 9)] = ("kafka",)
    heap: Heap = None
    replication: Annotated[int, Field(ge=1)] = 1
    min_insync_replicas: Annotated[int, Field(ge=1)] = 1


class ConnectNodes(Section):
    nodes: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 3
    heap: Heap = None


class ElasticsearchNodes(Section):
    """The nodes of one cluster; `shards` and `replicas` are those of an index without a target file."""

    nodes: Annotated[Names, _nodes("elasticsearch", 9)] = ("elasticsearch",)
    heap: Heap = None
    shards: Annotated[int, Field(ge=1, le=100)] = 3
    replicas: Annotated[int, Field(ge=0)] = 0


class PostgresNodes(Section):
    """The primary and its streaming replicas; if `synchronous`, a commit waits for one of them."""

    nodes: Annotated[Names, _nodes("postgres", 5)] = ("postgres",)
    synchronous: bool = False


class Topology(Section):
    """The nodes of a stack, by default the small one."""

    kafka: KafkaNodes = KafkaNodes()
    connect: ConnectNodes = ConnectNodes()
    elasticsearch: ElasticsearchNodes = ElasticsearchNodes()
    postgres: PostgresNodes = PostgresNodes()
    _name: str = PrivateAttr(default=SHIPPED[0])

    @model_validator(mode="after")
    def _fit(self) -> Self:
        kafka, elastic, postgres = self.kafka, self.elasticsearch, self.postgres
        brokers, most, synced = len(kafka.nodes), kafka.replication, kafka.min_insync_replicas
        for wrong, key, said in (
            (most > brokers, "kafka.replication", f"must be at most the number of nodes, {brokers}, found {most}"),
            (synced > most, "kafka.min_insync_replicas", f"must be at most replication, {most}, found {synced}"),
            # A replica is never on its primary's node: such an index would stay yellow.
            (
                elastic.replicas >= len(elastic.nodes),
                "elasticsearch.replicas",
                f"must be less than the number of nodes, {len(elastic.nodes)}, found {elastic.replicas}",
            ),
            (
                postgres.synchronous and len(postgres.nodes) == 1,
                "postgres.synchronous",
                "is true, and no second node is there to wait for",
            ),
        ):
            if wrong:
                raise mistake(f"{key} {said}", *key.split("."))
        return self

    @property
    def name(self) -> str:
        """Either "small", "published", or the file's name."""
        return self._name

    def of(self, service: str) -> tuple[Node, ...]:
        """Returns the nodes of a service, the first one first. Raises KeyError for an unknown service."""
        names: Mapping[str, tuple[str, ...]] = {
            "kafka": self.kafka.nodes,
            "elasticsearch": self.elasticsearch.nodes,
            "postgres": self.postgres.nodes,
            "pgbouncer": ("pgbouncer",),
            "connect": tuple(f"connect-{number}" for number in range(1, self.connect.nodes + 1)),
        }
        return tuple(Node(name, service, number) for number, name in enumerate(names[service], start=1))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """In starting order."""
        return tuple(node for service in SERVICES for node in self.of(service))

    def node(self, name: str) -> Node:
        """Raises KeyError if there is none."""
        return {node.name: node for node in self.nodes}[name]

    @property
    def is_single(self) -> bool:
        """Whether every service but Connect has one node."""
        return all(len(self.of(service)) == 1 for service in SERVICES if service != "connect")

    def with_sizes(self, workers: int, heaps: Mapping[str, str]) -> "Topology":
        new: dict[str, dict[str, object]] = {name: {"heap": heap} for name, heap in heaps.items()}
        new["connect"]["nodes"] = workers
        return self.model_copy(update={name: getattr(self, name).model_copy(update=size) for name, size in new.items()})

    def heaps(self) -> dict[str, str]:
        found = {name: getattr(self, name).heap for name in ("kafka", "connect", "elasticsearch")}
        return {name: heap for name, heap in found.items() if heap is not None}

    def describe(self) -> dict[str, dict[str, JsonValue]]:
        """Returns the names of each service's nodes, and what it replicates, without heaps."""
        found: dict[str, dict[str, JsonValue]] = self.model_dump(mode="json", exclude={"__all__": {"heap"}})
        found["connect"]["nodes"] = [node.name for node in self.of("connect")]
        return found

    def lines(self) -> list[str]:
        return [
            "; ".join(
                [
                    f"{service}: {', '.join(node.name for node in self.of(service))}",
                    *(f"{key} {shown(value)}" for key, value in said.items() if key != "nodes"),
                ]
            )
            for service, said in self.describe().items()
        ]


def needed_bytes(topology: Topology) -> int:
    """Returns the estimated memory of all nodes under load, from their heaps."""
    heaps = {service: int(size[:-1]) * _UNITS[size[-1]] for service, size in topology.heaps().items()}
    return round(BESIDE_HEAP * sum(heaps.get(node.service, 0) for node in topology.nodes)) + OTHERS_BYTES


def check_memory(topology: Topology, available_bytes: int) -> None:
    """Raises StackError if a topology that does not run yet needs more memory than is available."""
    needed = needed_bytes(topology)
    if needed <= available_bytes:
        return
    heaps = topology.heaps()
    counted = ", ".join(f"{len(topology.of(service))} x {heap} for {service}" for service, heap in heaps.items())
    otherwise = "" if topology.is_single else ", or set SINKBENCH_TOPOLOGY=small"
    raise StackError(
        f"the topology {topology.name} needs {needed / 1e9:.1f} GB of memory (heaps: {counted}; and all that is no"
        f" JVM), and {available_bytes / 1e9:.1f} GB are available; end other programs, lower SINKBENCH_KAFKA_HEAP,"
        f" SINKBENCH_CONNECT_HEAP, SINKBENCH_ELASTICSEARCH_HEAP or SINKBENCH_WORKERS{otherwise}"
    )


def load_topology(choice: str, checkout: Path, own: Path) -> Topology:
    """Returns a topology of `SHIPPED` from the folder `own`, or of a file below `checkout`. Raises SettingsError."""
    path = own / "topologies" / f"{choice}.yaml" if choice in SHIPPED else checkout / choice
    if path.suffix not in _FILE:
        raise SettingsError(
            f"SINKBENCH_TOPOLOGY={choice}: must be small, published, or a file (FILE.yaml)"
            + (f"; did you mean '{near}'?" if (near := nearest(choice, SHIPPED)) else "")
        )
    found = YamlFile(path, "topology", SettingsError).as_model(Topology)
    found._name = choice if choice in SHIPPED else path.name
    return found
