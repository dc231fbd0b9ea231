"""The settings: environment variables SINKBENCH_*, or in `.env` of the checkout, if installed the working folder."""

import getpass
import hashlib
import io
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import Field, PrivateAttr, StringConstraints, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from loadgen.reading import read_text
from sinkbench.errors import SettingsError
from sinkbench.place import BASE, IS_INSTALLED, data_folder
from sinkbench.place import CHECKOUT as CHECKOUT
from sinkbench.suggest import did_you_mean
from sinkbench.topology import MOST_WORKERS, PORT_STEPS, SHIPPED, Topology, load_topology

PREFIX = "SINKBENCH_"
HOST: Final = "127.0.0.1"
PORTS = (
    *("kafka_port", "kafka_controller_port", "elasticsearch_port", "elasticsearch_transport_port"),
    *("postgres_port", "pgbouncer_port"),
)
"""The ports of all services but the workers, in starting order; each begins with the service's name."""
HEAPS = ("kafka", "connect", "elasticsearch")

Port = Annotated[int, Field(ge=1024, le=65535)]
HeapSize = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*[mg]$"), Field(examples=["768m", "2g"])]
JavaOptions = Annotated[str, StringConstraints(pattern=r"^(-\S+( -\S+)*)?$"), Field(examples=["-Xint", "-XX:+UseZGC"])]


class Settings(BaseSettings):
    """What a user can set; a field is the variable SINKBENCH_<FIELD>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    stack: str = Field(default="local", description="where to race: local, compose, or a stack file")
    plan: Path = Field(default=Path("plans/quick.yaml"), description="what `race` runs if it is given no plan")
    thresholds: Path = Field(
        default=Path("tests/capacity/plan.yaml"), description="the plan whose thresholds tests/capacity checks"
    )
    home: Path = Field(
        default=Path("var"),
        description="folder for the local stack's data and logs; of an installed sinkbench, also for results",
    )
    dist: Path = Field(default=Path("var/dist"), description="folder for the programs that come from Maven")
    user: str = Field(default="sinkbench", description="who runs the services when sinkbench is started by root")
    topology: str = Field(default=SHIPPED[0], description="which nodes there are: small, published, or a file of yours")
    security: Literal["off", "on"] = Field(
        default="off", description="on: TLS, users and passwords for every service of the local stack, or of containers"
    )
    listen: Literal["127.0.0.1", "0.0.0.0"] = Field(  # noqa: S104
        default=HOST,
        description="where the local stack's services listen; 0.0.0.0, for all networks, wants SINKBENCH_SECURITY=on",
    )
    workers: int = Field(
        default=3, ge=1, le=MOST_WORKERS, description="number of Kafka Connect workers; if not set, the topology's"
    )

    port_offset: int = Field(default=0, ge=-10000, le=40000, description="is added to every port; moves them all")
    kafka_port: Port = Field(default=19092, description="Kafka's, for its clients; each further broker's is 2 higher")
    kafka_controller_port: Port = Field(
        default=19093, description="Kafka's, for its controllers; each further one's is 2 higher"
    )
    connect_port: Port = Field(default=18083, description="REST of the first worker; each further worker has the next")
    connect_metrics_port: Port = Field(default=19404, description="metrics of the first worker; then the next")
    elasticsearch_port: Port = Field(
        default=19200, description="Elasticsearch's HTTP interface; each further node has the next"
    )
    elasticsearch_transport_port: Port = Field(
        default=19300, description="Elasticsearch's, between its nodes; each further node has the next"
    )
    postgres_port: Port = Field(default=15432, description="PostgreSQL's; each replica has the next")
    pgbouncer_port: Port = Field(default=16432, description="PgBouncer's")
    live_port: Port = Field(default=18070, description="page of `race --live`")

    kafka_heap: HeapSize = Field(default="768m", description="Java heap of each broker; wins over the topology's")
    connect_heap: HeapSize = Field(default="768m", description="Java heap of each worker; wins over the topology's")
    elasticsearch_heap: HeapSize = Field(
        default="1g", description="Java heap of each Elasticsearch node; as the others"
    )

    java_options: JavaOptions = Field(default="", description="of workers and Elasticsearch, without heaps")

    connect_rebalance_delay_ms: int = Field(
        default=10_000, ge=0, description="how long a dead worker's tasks wait for it; Kafka's default is 300000"
    )

    # For containers; processes of the local stack have no limits. A JVM needs more than its heap.
    kafka_memory: HeapSize = Field(default="2g", description="memory of Kafka's container at most")
    connect_memory: HeapSize = Field(default="1536m", description="memory of each worker's container at most")
    elasticsearch_memory: HeapSize = Field(default="3g", description="memory of Elasticsearch's container at most")
    postgres_memory: HeapSize = Field(default="3g", description="memory of PostgreSQL's container at most")
    pgbouncer_memory: HeapSize = Field(default="256m", description="memory of PgBouncer's container at most")
    loadgen_memory: HeapSize = Field(default="1g", description="memory of each load generator's container at most")
    controller_memory: HeapSize = Field(default="1g", description="memory of the controller's container at most")

    _layout: Topology = PrivateAttr(default_factory=Topology)
    _workers_given: bool = PrivateAttr(default=False)

    @property
    def layout(self) -> Topology:
        return self._layout.with_sizes(self.workers, {name: str(getattr(self, f"{name}_heap")) for name in HEAPS})

    def with_layout(self, found: Topology) -> "Settings":
        """Returns these settings with a topology; explicit settings override its workers and heaps."""
        heaps = {f"{name}_heap": heap for name, heap in found.heaps().items()}
        new: dict[str, int | str] = {"workers": found.connect.nodes, **heaps}
        copy = self.model_copy(update={name: value for name, value in new.items() if name not in self.model_fields_set})
        copy._layout = found
        copy._workers_given = not self.model_fields_set.isdisjoint(("workers", "topology"))
        return copy

    def with_workers(self, count: int | None) -> "Settings":
        """Returns these settings with `count` workers, unless they state a number or a topology."""
        return self.model_copy(update={"workers": count}) if count and not self._workers_given else self

    def ports(self) -> list[tuple[int, str, str]]:
        """Returns (port with offset, variable, service) for each port of the stack, in starting order. Raises
        SettingsError if a port is out of range, or used twice, including that of the live page."""
        layout = self.layout
        named = [(name, node.name, node.number) for name in PORTS for node in layout.of(name.split("_")[0])]
        for node in layout.of("connect"):
            named += [(name, node.name, node.number) for name in ("connect_port", "connect_metrics_port")]
        # Not of the stack, but no service may use it.
        named.append(("live_port", "the live page", 1))
        taken: dict[int, tuple[str, str]] = {}
        for name, service, node_number in named:
            number, variable = self.port(name, node_number), PREFIX + name.upper()
            if not 1024 <= number <= 65535:
                raise SettingsError(
                    f"{PREFIX}PORT_OFFSET={self.port_offset}: moves {variable} to {number}; "
                    "choose one that keeps it between 1024 and 65535"
                )
            if number in taken:
                raise SettingsError(
                    f"port {number}: both {taken[number][0]} and {variable} (for {service}) ask for it; change one"
                )
            taken[number] = variable, service
        return [(number, *each) for number, each in taken.items() if number != self.port("live_port")]

    def port(self, name: str, number: int = 1) -> int:
        """Returns the port setting `name`, such as "kafka_port", of the node `number`, with the offset."""
        return int(getattr(self, name)) + self.port_offset + PORT_STEPS.get(name.split("_")[0], 0) * (number - 1)

    def show(self) -> str:
        """Returns the settings in force as lines of a `.env` file, and the topology's nodes as comments."""
        values = [f"{PREFIX}{name.upper()}={value}" for name, value in self.model_dump().items()]
        return "\n".join([*values, *(f"# {line}" for line in self.layout.lines())])


def existing_part(path: Path) -> Path:
    """Returns `path`, or its nearest parent that exists."""
    return next(each for each in (path, *path.parents) if each.exists())


def reachable_by_others(path: Path) -> bool:
    """Whether an unprivileged user can enter `path`."""
    existing = existing_part(path)
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in [existing, *existing.parents])


def _home(checkout: Path) -> Path:
    """The default of SINKBENCH_HOME: `var` in the checkout, if installed the user's data folder, or below
    /var/lib if root's services could not enter it."""
    inside = data_folder() if IS_INSTALLED else checkout / "var"
    if os.geteuid() != 0 or reachable_by_others(inside):
        return inside
    digest = "installed" if IS_INSTALLED else hashlib.sha256(str(checkout).encode()).hexdigest()[:8]
    return Path("/var/lib/sinkbench") / digest


def state_folder() -> Path:
    """The folder of `results`: the checkout, or SINKBENCH_HOME if sinkbench is installed."""
    return load_settings().home if IS_INSTALLED else CHECKOUT


def _settings_file(path: Path) -> dict[str, str | None]:
    """The variables of a `.env` file, if it exists. Raises SettingsError if it is invalid."""
    try:
        text = read_text(path, SettingsError)
    except FileNotFoundError:
        return {}
    for found in parse_stream(io.StringIO(text)):
        if found.error:
            at = f"{path}:{found.original.line}"
            raise SettingsError(f"{at}: is not NAME=value; correct it, or begin it with # ")
    return dotenv_values(stream=io.StringIO(text))


def load_settings(checkout: Path = BASE, changed: Mapping[str, str] = MappingProxyType({})) -> Settings:
    """Returns the settings in force, with those changed that are given by name. Raises SettingsError for an unknown
    variable, or an invalid value or topology."""
    other = {PREFIX + name.upper(): value for name, value in changed.items()}
    values = {**_settings_file(checkout / ".env"), **os.environ, **other}
    known = {PREFIX + name.upper(): name for name in Settings.model_fields}
    home = _home(checkout)
    given: dict[str, Any] = {"home": home, "dist": home / "dist"}
    for variable in sorted(v for v in values if v.startswith(PREFIX)):
        if variable not in known:
            raise SettingsError(f"{variable}: no such setting{did_you_mean(variable, known)}")
        given[known[variable]] = values[variable] or ""
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        # An example is clearer than a pattern.
        examples = Settings.model_fields[field].examples if first["type"] == "string_pattern_mismatch" else None
        wrong = f"must be such as {' or '.join(examples)}" if examples else first["msg"].lower()
        raise SettingsError(f"{PREFIX}{field.upper()}={first['input']}: {wrong}") from None
    user = settings.user
    if os.geteuid() != 0:
        # A user in a container may have no name.
        user = str(os.geteuid())
        with suppress(KeyError, OSError):
            user = getpass.getuser()
    folders = {"home": (checkout / settings.home).absolute(), "dist": (checkout / settings.dist).absolute()}
    settings = settings.model_copy(update={**folders, "user": user})
    settings = settings.with_layout(load_topology(settings.topology, checkout, CHECKOUT))
    settings.ports()
    if settings.listen != HOST and settings.security == "off":
        raise SettingsError(
            f"{PREFIX}LISTEN={settings.listen}: anybody could read and write there; set {PREFIX}SECURITY=on, too, or"
            f" leave {PREFIX}LISTEN out"
        )
    return settings
