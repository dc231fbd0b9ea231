"""The settings of the stacks: environment variables SINKBENCH_*, or the same names in the checkout's `.env`."""

from __future__ import annotations

import getpass
import hashlib
import os
import stat
from pathlib import Path
from typing import Annotated, Any

from dotenv import dotenv_values
from pydantic import Field, StringConstraints, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from sinkbench.errors import SettingsError
from sinkbench.suggest import did_you_mean

__all__ = ["CHECKOUT", "Settings", "load_settings", "reachable_by_others"]

CHECKOUT = Path(__file__).resolve().parent.parent
PREFIX = "SINKBENCH_"

Port = Annotated[int, Field(ge=1024, le=65535)]
HeapSize = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*[mg]$"), Field(examples=["768m", "2g"])]
MemorySize = HeapSize
Cpus = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?$"), Field(examples=["0", "1.5"])]


class Settings(BaseSettings):
    """What a user can set; each field is the environment variable SINKBENCH_<FIELD>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    stack: str = Field(default="local", description="where to race: local, compose, or a stack file")
    plan: Path = Field(default=Path("plans/quick.yaml"), description="what `race` runs if it is given no plan")
    thresholds: Path = Field(
        default=Path("tests/capacity/thresholds.yaml"), description="what tests/capacity asks of the pipelines"
    )
    home: Path = Field(default=Path("var"), description="folder for the local stack's data and logs")
    dist: Path = Field(default=Path("var/dist"), description="folder for the programs that come from Maven")
    user: str = Field(default="sinkbench", description="who runs the services when sinkbench is started by root")
    workers: int = Field(default=3, ge=1, le=16, description="number of Kafka Connect workers")

    port_offset: int = Field(default=0, ge=-10000, le=40000, description="is added to every port; moves them all")
    kafka_port: Port = Field(default=19092, description="Kafka's, for its clients")
    kafka_controller_port: Port = Field(default=19093, description="Kafka's, for itself as its own controller")
    connect_port: Port = Field(default=18083, description="REST of the first worker; each further worker has the next")
    connect_metrics_port: Port = Field(default=19404, description="metrics of the first worker; then the next")
    elasticsearch_port: Port = Field(default=19200, description="Elasticsearch's HTTP interface")
    elasticsearch_transport_port: Port = Field(default=19300, description="Elasticsearch's, between its nodes")
    postgres_port: Port = Field(default=15432, description="PostgreSQL's")
    pgbouncer_port: Port = Field(default=16432, description="PgBouncer's")
    live_port: Port = Field(default=18070, description="page of `race --live`")

    kafka_heap: HeapSize = Field(default="768m", description="Java heap of Kafka")
    connect_heap: HeapSize = Field(default="768m", description="Java heap of each worker")
    elasticsearch_heap: HeapSize = Field(default="1g", description="Java heap of Elasticsearch")

    # Of the containers; the local stack's processes have no limits. Heap, and what a JVM needs beside it, must fit.
    kafka_memory: MemorySize = Field(default="2g", description="memory of Kafka's container at most")
    connect_memory: MemorySize = Field(default="1536m", description="memory of each worker's container at most")
    elasticsearch_memory: MemorySize = Field(default="3g", description="memory of Elasticsearch's container at most")
    postgres_memory: MemorySize = Field(default="3g", description="memory of PostgreSQL's container at most")
    pgbouncer_memory: MemorySize = Field(default="256m", description="memory of PgBouncer's container at most")
    loadgen_memory: MemorySize = Field(default="1g", description="memory of each load generator's container at most")
    controller_memory: MemorySize = Field(default="1g", description="memory of the controller's container at most")
    kafka_cpus: Cpus = Field(default="0", description="cores of Kafka's container at most; 0: no limit")
    connect_cpus: Cpus = Field(default="0", description="cores of each worker's container at most; 0: no limit")
    elasticsearch_cpus: Cpus = Field(default="0", description="cores of Elasticsearch's container; 0: no limit")
    postgres_cpus: Cpus = Field(default="0", description="cores of PostgreSQL's container at most; 0: no limit")
    pgbouncer_cpus: Cpus = Field(default="0", description="cores of PgBouncer's container at most; 0: no limit")
    loadgen_cpus: Cpus = Field(default="0", description="cores of each load generator's container; 0: no limit")
    controller_cpus: Cpus = Field(default="0", description="cores of the controller's container; 0: no limit")

    def ports(self) -> list[tuple[int, str, str]]:
        """Every port that the stack listens on.

        Returns:
            (port with the offset added, the variable that sets it, the service that listens), in starting order.

        Raises:
            SettingsError: the offset moves a port out of range, or two services, or the live page, get the same port.
        """
        named = [
            (self.kafka_port, "KAFKA_PORT", "kafka"),
            (self.kafka_controller_port, "KAFKA_CONTROLLER_PORT", "kafka"),
            (self.elasticsearch_port, "ELASTICSEARCH_PORT", "elasticsearch"),
            (self.elasticsearch_transport_port, "ELASTICSEARCH_TRANSPORT_PORT", "elasticsearch"),
            (self.postgres_port, "POSTGRES_PORT", "postgres"),
            (self.pgbouncer_port, "PGBOUNCER_PORT", "pgbouncer"),
        ]
        for worker in range(self.workers):
            named.append((self.connect_port + worker, "CONNECT_PORT", f"connect-{worker + 1}"))
            named.append((self.connect_metrics_port + worker, "CONNECT_METRICS_PORT", f"connect-{worker + 1}"))
        stack = len(named)
        # Not the stack's, but there may be none of these on it.
        named.append((self.live_port, "LIVE_PORT", "the live page"))
        seen: dict[int, str] = {}
        moved = []
        for port, name, service in named:
            number = port + self.port_offset
            if not 1024 <= number <= 65535:
                raise SettingsError(
                    f"{PREFIX}PORT_OFFSET={self.port_offset}: moves {PREFIX}{name} to {number}; "
                    "choose one that keeps it between 1024 and 65535"
                )
            if number in seen:
                raise SettingsError(
                    f"port {number}: both {seen[number]} and {PREFIX}{name} (for {service}) ask for it; change one"
                )
            seen[number] = PREFIX + name
            moved.append((number, PREFIX + name, service))
        return moved[:stack]

    def port(self, name: str) -> int:
        """The number of the port setting `name`, such as "kafka_port", with the offset added."""
        return int(getattr(self, name)) + self.port_offset

    def show(self) -> str:
        """Every setting with its value in force, a line each, as a `.env` file has them."""
        return "\n".join(f"{PREFIX}{name.upper()}={value}" for name, value in self.model_dump().items())


def reachable_by_others(path: Path) -> bool:
    """Whether an unprivileged user can enter `path`: every folder on the way lets others pass."""
    existing = path
    while not existing.exists():
        existing = existing.parent
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in [existing, *existing.parents])


def _home(checkout: Path) -> Path:
    """The default of SINKBENCH_HOME: `var` in the checkout, or, where root's services could not enter it, /var/lib."""
    inside = checkout / "var"
    if os.geteuid() != 0 or reachable_by_others(inside):
        return inside
    digest = hashlib.sha256(str(checkout).encode()).hexdigest()[:8]
    return Path("/var/lib/sinkbench") / digest


def _account() -> str:
    """The name of whoever runs this; in a container an account may have none, and its number stands for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())


def load_settings(checkout: Path = CHECKOUT) -> Settings:
    """The settings from the environment and from `.env`; the environment wins.

    Raises:
        SettingsError: a SINKBENCH_ variable is unknown, or a value cannot be used.
    """
    file = checkout / ".env"
    values: dict[str, str] = {k: v or "" for k, v in dotenv_values(file).items()} if file.is_file() else {}
    values.update(os.environ)
    known = {PREFIX + name.upper(): name for name in Settings.model_fields}
    given: dict[str, Any] = {}
    for variable in sorted(v for v in values if v.startswith(PREFIX)):
        if variable not in known:
            raise SettingsError(f"{variable}: no such setting{did_you_mean(variable, known)}")
        given[known[variable]] = values[variable]
    home = _home(checkout)
    given.setdefault("home", home)
    given.setdefault("dist", home / "dist")
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = PREFIX + str(first["loc"][0]).upper()
        raise SettingsError(f"{name}={first['input']}: {first['msg'].lower()}") from None
    user = settings.user if os.geteuid() == 0 else _account()
    folders = {"home": (checkout / settings.home).absolute(), "dist": (checkout / settings.dist).absolute()}
    settings = settings.model_copy(update={**folders, "user": user})
    settings.ports()
    return settings
