"""The stack file: addresses of existing clusters, and where their secrets are, which is read as strictly as a plan; and
the driver of these clusters. It starts, stops and kills nothing."""

import hashlib
import os
import re
import tempfile
import tomllib
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PrivateAttr, create_model, model_validator

from sinkbench.errors import StackError
from sinkbench.secrets import conceal_misplaced, redacted
from sinkbench.services.access import Access
from sinkbench.stack import Endpoints, Facts, Say, ServiceState, Stack, Usage
from sinkbench.stack.assembly import at_once, checks, unsupported
from sinkbench.stack.prometheus import PrometheusSection
from sinkbench.stack.registry import declared_sinks, sink_service, sink_services
from sinkbench.stack.sections import HttpSection, SinkSection, StackSection, Urls, Variables, kafka_settings
from sinkbench.topology import service_of
from sinkbench.yamlfile import YamlFile, mistake

# A cluster may be remote and slow to respond.
TIMEOUT_SECONDS = 10.0

Settings = Annotated[dict[str, str], BeforeValidator(kafka_settings)]


class KafkaSection(StackSection):
    bootstrap: str = Field(min_length=1, description="host:port of one or several brokers, separated by commas")
    settings: Settings = Field(default_factory=dict, description="librdkafka's settings for SASL and TLS", repr=False)


class ConnectSection(HttpSection):
    urls: Urls = Field(min_length=1)
    workers: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="number of workers (default: of urls); Connect does not tell"
    )
    metrics: Urls = Field(
        default=(), description="each worker's metrics: the Prometheus JMX exporter with connect/metrics.yaml"
    )
    variables: Variables = Field(
        default_factory=dict, description="what ${env:NAME} in a connector file stands for", repr=False
    )

    @model_validator(mode="after")
    def _urls_are_distinct(self) -> Self:
        for index, url in enumerate(self.urls):
            if url in self.urls[:index]:
                raise mistake(f"urls lists {url} twice; give 'workers' to say how many there are", "urls", index)
        return self


class LoadgenSection(HttpSection):
    urls: Urls = Field(min_length=1)


class StackFile(StackSection):
    """A stack file without the sinks' sections; `load_stack_file` makes a subclass with these."""

    kafka: KafkaSection
    connect: ConnectSection
    loadgen: LoadgenSection | None = None
    prometheus: PrometheusSection | None = None

    _source: YamlFile = PrivateAttr()

    def where(self, *path: str | int) -> str:
        """`file:line` of a key or list item."""
        return self._source.where(*path)

    @property
    def path(self) -> Path:
        return self._source.path

    @property
    def workers(self) -> int:
        return self.connect.workers or len(self.connect.urls)

    @property
    def loadgen_urls(self) -> dict[str, str]:
        return _numbered("loadgen", () if self.loadgen is None else self.loadgen.urls)

    def lines(self) -> dict[str, str]:
        """Returns `file:line` of each service's address, by name."""
        return {
            "kafka": self.where("kafka", "bootstrap"),
            **{name: self.where(name, service.section.address_key) for name, service in sink_services().items()},
            **{
                name: self.where(section, "urls", index)
                for section, urls in (("connect", self.connect.urls), ("loadgen", self.loadgen_urls))
                for index, name in enumerate(_numbered(section, urls))
            },
        }

    def endpoints(self) -> Endpoints:
        """Worker ids are not in the file, so Connect's own (host:port) are used."""
        connect = self.connect
        sinks = {name: section for name in sink_services() if isinstance(section := getattr(self, name), SinkSection)}
        # An index named by the workers' environment would differ from the one that is measured.
        needed = {name: value for section in sinks.values() for name, value in section.variables().items()}
        return Endpoints(
            kafka=self.kafka.bootstrap,
            connect=_numbered("connect", connect.urls),
            worker_ids={},
            sinks={name: section.endpoint() for name, section in sinks.items()},
            kafka_settings=self.kafka.settings,
            connect_access=connect.access,
            connect_metrics=_numbered("connect", connect.metrics),
            connect_variables={**needed, **connect.variables},
            loadgens=self.loadgen_urls,
            loadgen_access=Access() if self.loadgen is None else self.loadgen.access,
            shared=True,
            stack_file=self.path,
        )


def _numbered(name: str, urls: Iterable[str]) -> dict[str, str]:
    return {f"{name}-{number}": url for number, url in enumerate(urls, start=1)}


def load_stack_file(path: Path) -> StackFile:
    """Reads a stack file, and conceals its secrets. Raises StackError with a line for each of up to five mistakes."""
    source = YamlFile(path, "stack file", StackError)
    conceal_misplaced(source.content)
    sections = {name: service.section for name, service in sink_services().items()}
    fields: dict[str, Any] = {name: (section | None, None) for name, section in sections.items()}
    model = create_model("StackFile", __base__=StackFile, **fields)
    file = source.as_model(model, context={"folder": path.absolute().parent})
    file._source = source
    return file


def advice(answer: str) -> str:
    table = tomllib.loads(files("sinkbench.stack").joinpath("advice.toml").read_text(encoding="utf-8"))
    found = (fix for parts, fix in table.items() if re.search(parts, answer.casefold()))
    return next(found, "check that it runs, and its address")


class ExternalStack(Stack):
    name = "external"
    faults = None
    layout = None

    def __init__(self, path: Path) -> None:
        """Raises StackError, with the line, if the file at `path`, or a file that it names, cannot be used."""
        self._file = load_stack_file(path)
        self._endpoints, self._lines = self._file.endpoints(), self._file.lines()

    @property
    def endpoints(self) -> Endpoints:
        return self._endpoints

    @property
    def workers(self) -> int:
        return self._file.workers

    @property
    def lock_file(self) -> Path:
        digest = hashlib.sha256(self._endpoints.kafka.encode()).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"sinkbench-{os.geteuid()}-{digest}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            raise StackError(f"{folder}: belongs to another account; remove it, or set TMPDIR to a folder of your own")
        return folder / "race.lock"

    def start_id(self) -> str | None:
        """Constant, since sinkbench does not start these clusters."""
        return self.name

    def up(self, say: Say) -> None:
        """Checks each endpoint's credentials and version. Raises StackError with a line for each failure."""
        asked = checks(self._endpoints, timeout=TIMEOUT_SECONDS, loadgens=True)
        where, found = self._endpoints.addresses(), at_once(asked)
        answering = [name for name, problem in found.items() if problem is None]
        found |= at_once({name: partial(unsupported, self._endpoints, name) for name in answering})
        problems = [
            f"{self._lines[name]}: {name} at {where[name]}: {problem.rstrip('.')}; {advice(problem)}"
            for name, problem in found.items()
            if problem is not None
        ]
        if self._file.prometheus is not None and (said := self._file.prometheus.problem()) is not None:
            problems.append(f"{self._file.where('prometheus')}: {said}")
        if problems:
            raise StackError(redacted("\n".join(problems)))
        say(f"not measured on these clusters: {', '.join(self.facts().unmeasured)}")

    def down(self) -> None:
        raise StackError(f"{self._file.path}: these clusters are other people's: nothing is started or stopped")

    def services(self) -> list[ServiceState]:
        found = at_once(checks(self._endpoints, timeout=TIMEOUT_SECONDS))
        return [ServiceState(n, "dead" if said else "running", None, redacted(said or "")) for n, said in found.items()]

    def usage(self) -> Usage:
        found = Usage() if self._file.prometheus is None else self._file.prometheus.usage()
        hidden = [name for name in checks(self._endpoints) if service_of(name) not in self._queried("cpu_seconds")]
        return replace(found, cpu_seconds={**dict.fromkeys(hidden), **found.cpu_seconds})

    def _queried(self, figure: str) -> Collection[str]:
        return () if self._file.prometheus is None else getattr(self._file.prometheus, figure).keys()

    def facts(self) -> Facts:
        return Facts(unmeasured=self._unmeasured())

    def _unmeasured(self) -> tuple[str, ...]:
        there = self._endpoints.sinks
        titles = {"kafka": "Kafka", **{name: sink_service(name).title for name in there}, "connect": "Connect"}
        cpu = [f"CPU time of {title}" for name, title in titles.items() if name not in self._queried("cpu_seconds")]
        memory = [] if titles.keys() <= set(self._queried("memory_bytes")) else ["memory of the services"]
        absent = [
            service.measures
            for sink in declared_sinks()
            for service in sink.services
            if sink.name in there and service.name not in there and service.measures
        ]
        return (*cpu, *memory, "free disk space of the services", *absent)

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        raise StackError(f"{self._file.path}: these clusters are other people's: their logs are with them")

    def log_tail(self, service: str, lines: int) -> str:
        raise StackError(f"{self._file.path}: the log of {service} is not visible from here")
